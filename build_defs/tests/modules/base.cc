module;

#include <string>

#include "absl/status/statusor.h"

module gridbuf.build_test.base;

namespace gridbuf::build_test {
absl::StatusOr<std::string> greet(int times) {
  if (times < 0) return absl::InvalidArgumentError("times must be >= 0");
  std::string text;
  for (int i = 0; i < times; ++i) text += "hello ";
  return text;
}
}  // namespace gridbuf::build_test
