module;

#include <cstddef>

export module gridbuf.build_test.middle;

import gridbuf.build_test.base;

export namespace gridbuf::build_test {
inline std::size_t greeting_length(int times) { return greet(times).value().length(); }
}  // namespace gridbuf::build_test
