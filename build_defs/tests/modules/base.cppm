module;

#include <string>

#include "absl/status/statusor.h"

export module gridbuf.build_test.base;

export namespace gridbuf::build_test {
absl::StatusOr<std::string> greet(int times);
}
