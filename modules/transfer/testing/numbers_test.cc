#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <vector>

#include "gtest/gtest.h"

import gridbuf.transfer;
import gridbuf.transfer.testing;

namespace gridbuf::testing {
namespace {

// The bits of a number as another type. The tests expect the results of NumPy 2.4.6.
std::uint64_t converted(std::uint64_t bits, Number target, Number source, bool warns = false) {
  std::uint64_t result[2] = {0, 0};
  const std::uint64_t both[2] = {bits, 0};
  EXPECT_EQ(define_conversion(reinterpret_cast<std::byte*>(result), target,
                              reinterpret_cast<const std::byte*>(both), source),
            warns);
  return result[0];
}

TEST(DefineConversion, AgreesWithNumPy) {
  using enum Number;
  EXPECT_EQ(converted(0x7fffffffffffffff, kFloat32, kInt64), 0x5f000000U);
  EXPECT_EQ(converted(0x7d01, kFloat32, kFloat16), 0x7fa02000U);
  EXPECT_EQ(converted(0x7d01, kFloat64, kFloat16), 0x7ff4040000000000U);
  EXPECT_EQ(converted(0x7fa00001, kFloat16, kFloat32), 0x7d00U);
  EXPECT_EQ(converted(0x7f800001, kFloat16, kFloat32), 0x7c01U);
  EXPECT_EQ(converted(0x7fa00001, kFloat64, kFloat32, true), 0x7ffc000020000000U);
  EXPECT_EQ(converted(0x7ff4000000000001, kFloat32, kFloat64, true), 0x7fe00000U);
  // Halfway between two float16 except for a bit that does not fit in float32: rounded once.
  EXPECT_EQ(converted(0x3ff0020000000000, kFloat16, kFloat64), 0x3c00U);
  EXPECT_EQ(converted(0x3ff0020000000001, kFloat16, kFloat64), 0x3c01U);
  EXPECT_EQ(converted(0x7fefffffffffffff, kFloat32, kFloat64, true), 0x7f800000U);
}

TEST(SpecialNumbers, HoldTheirKinds) {
  const std::vector<std::byte> bytes = special_numbers(Number::kFloat64);
  std::vector<double> numbers(bytes.size() / sizeof(double));
  std::memcpy(numbers.data(), bytes.data(), bytes.size());
  const auto has = [&](auto test) { return std::any_of(numbers.begin(), numbers.end(), test); };
  EXPECT_TRUE(has([](double x) { return std::isnan(x); }));
  EXPECT_TRUE(has([](double x) { return x == 0 && std::signbit(x); }));
  EXPECT_TRUE(has([](double x) { return x == -std::numeric_limits<double>::infinity(); }));
  EXPECT_TRUE(has([](double x) { return x == std::numeric_limits<double>::denorm_min(); }));
  EXPECT_TRUE(has([](double x) { return x == 127.5; }));
  EXPECT_TRUE(has([](double x) { return x == 9223372036854775808.0; }));
  EXPECT_EQ(special_numbers(Number::kFloat16).size(), std::size_t{2} << 16);
}

}  // namespace
}  // namespace gridbuf::testing
