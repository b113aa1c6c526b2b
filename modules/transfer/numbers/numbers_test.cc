#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include "gtest/gtest.h"

import gridbuf.transfer.numbers.testing;
import gridbuf.transfer.numbers;
import gridbuf.transfer.simd;

namespace gridbuf {
namespace {

using Bytes = std::vector<std::byte>;

std::vector<Number> all_numbers() {
  std::vector<Number> all;
  for (int number = 0; number < kNumberCount; ++number) all.push_back(static_cast<Number>(number));
  return all;
}

std::string hex(const std::byte* bytes, std::int64_t length) {
  std::string text;
  for (std::int64_t i = length - 1; i >= 0; --i) {
    constexpr const char* kDigits = "0123456789abcdef";
    text += kDigits[std::to_integer<int>(bytes[i]) / 16];
    text += kDigits[std::to_integer<int>(bytes[i]) % 16];
  }
  return text;
}

// Every pair of types on every path.
class ConvertRows : public ::testing::TestWithParam<Simd> {
 protected:
  // One row of all numbers, misaligned by `shift` bytes, with sentinels at both ends; result and
  // report must be those of the definition.
  void check(Number target, Number source, const Bytes& numbers, std::int64_t shift) {
    const std::int64_t from = facts_of(source).itemsize_bytes;
    const std::int64_t to = facts_of(target).itemsize_bytes;
    const std::int64_t count = static_cast<std::int64_t>(numbers.size()) / from;
    Bytes row(numbers.size() + 16);
    std::copy(numbers.begin(), numbers.end(), row.begin() + shift);
    constexpr std::byte kSentinel{0xA5};
    Bytes result(static_cast<std::size_t>(count * to + 32), kSentinel);
    const ConversionFlags flags =
        convert_row(target, source, GetParam())(result.data() + shift, row.data() + shift, count);
    Bytes expected = result;
    ConversionFlags expected_flags;
    for (std::int64_t i = 0; i < count; ++i) {
      std::byte* const one = expected.data() + shift + i * to;
      expected_flags |= testing::define_conversion(one, target, numbers.data() + i * from, source);
      ASSERT_EQ(std::memcmp(one, result.data() + shift + i * to, static_cast<std::size_t>(to)), 0)
          << facts_of(source).name << " " << hex(numbers.data() + i * from, from) << " is "
          << hex(result.data() + shift + i * to, to) << " as " << facts_of(target).name
          << " and not " << hex(one, to);
    }
    EXPECT_EQ(flags, expected_flags) << facts_of(source).name << " to " << facts_of(target).name;
    for (std::int64_t i = 0; i < shift; ++i)
      EXPECT_EQ(result[static_cast<std::size_t>(i)], kSentinel);
    for (auto at = static_cast<std::size_t>(shift + count * to); at < result.size(); ++at) {
      EXPECT_EQ(result[at], kSentinel);
    }
  }
};

TEST_P(ConvertRows, MatchTheDefinitionForAllSpecialNumbers) {
  for (const Number source : all_numbers()) {
    const Bytes numbers = testing::special_numbers(source);
    for (const Number target : all_numbers()) {
      for (const std::int64_t shift : {0, 3}) {
        check(target, source, numbers, shift);
        if (HasFatalFailure()) return;
      }
    }
  }
}

// Flags one number at a time: none hides behind another's. Lengths around those of vectors: each
// number once in a vector, once in a tail.
TEST_P(ConvertRows, ReportWhatEachNumberDoes) {
  for (const Number source : all_numbers()) {
    const std::int64_t from = facts_of(source).itemsize_bytes;
    const Bytes numbers = testing::special_numbers(source);
    const std::int64_t count = static_cast<std::int64_t>(numbers.size()) / from;
    for (const Number target : all_numbers()) {
      for (std::int64_t i = 0; i < count; i += 1 + count / 400) {
        const auto at = numbers.begin() + i * from;
        for (const std::int64_t length : {1, 17, 37}) {
          Bytes row(static_cast<std::size_t>(length * from));
          std::copy(at, at + from, row.end() - from);
          check(target, source, row, 0);
          std::fill(row.begin(), row.end(), std::byte{0});
          std::copy(at, at + from, row.begin());
          check(target, source, row, 0);
          if (HasFatalFailure()) return;
        }
      }
    }
  }
}

TEST_P(ConvertRows, ConvertNothing) {
  for (const Number source : all_numbers()) {
    for (const Number target : all_numbers()) {
      EXPECT_EQ(convert_row(target, source, GetParam())(nullptr, nullptr, 0), ConversionFlags{});
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Paths, ConvertRows, ::testing::ValuesIn(supported_simd()),
                         [](const auto& path) { return std::string(to_string(path.param)); });

// [example]
// Three temperatures as whole degrees; reports if one is NaN or beyond 8 bits.
bool to_degrees(std::int8_t* degrees, const double* temperatures) {
  const ConvertRow convert = convert_row(Number::kInt8, Number::kFloat64, simd());
  return !convert(reinterpret_cast<std::byte*>(degrees),
                  reinterpret_cast<const std::byte*>(temperatures), 3)
              .invalid;
}
// [/example]

TEST(Example, OfTheReadme) {
  const double temperatures[] = {-12.75, 0, 99.5};
  std::int8_t degrees[3];
  EXPECT_TRUE(to_degrees(degrees, temperatures));
  EXPECT_EQ(degrees[0], -12);
  EXPECT_EQ(degrees[2], 99);
  const double too_hot[] = {0, 0, 128};
  EXPECT_FALSE(to_degrees(degrees, too_hot));
}

TEST(SameBytes, OfIntegersOfOneLengthAndNothingElse) {
  EXPECT_TRUE(same_bytes(Number::kInt32, Number::kUint32));
  EXPECT_TRUE(same_bytes(Number::kComplex64, Number::kComplex64));
  EXPECT_FALSE(same_bytes(Number::kInt8, Number::kBool));
  EXPECT_FALSE(same_bytes(Number::kFloat32, Number::kUint32));
  EXPECT_FALSE(same_bytes(Number::kInt16, Number::kFloat16));
  EXPECT_FALSE(same_bytes(Number::kComplex64, Number::kFloat64));
}

}  // namespace
}  // namespace gridbuf
