#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "gtest/gtest.h"

import gridbuf.layout;
import gridbuf.layout.view;
import gridbuf.transfer;
import gridbuf.transfer.testing;

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

StridedView row_of(Number type, std::int64_t count) {
  const std::int64_t itemsize = info_of(type).itemsize_bytes;
  return {.shape = {count}, .strides_bytes = {itemsize}, .itemsize_bytes = itemsize};
}

// Calls `visit(target, source)` for every cast.
template <class Visit>
void for_each_cast(const Visit& visit) {
  for (const Number source : all_numbers()) {
    for (const Number target : all_numbers()) {
      if (can_convert(target, source)) visit(target, source);
    }
  }
}

class ConvertRows : public ::testing::Test {
 protected:
  // Casts one row of all numbers, misaligned by `shift` bytes, with sentinels at both ends. Result
  // and warning must be those of the definition.
  void check(Number target, Number source, const Bytes& numbers, std::int64_t shift) {
    const std::int64_t from = info_of(source).itemsize_bytes;
    const std::int64_t to = info_of(target).itemsize_bytes;
    const std::int64_t count = static_cast<std::int64_t>(numbers.size()) / from;
    Bytes row(numbers.size() + 16);
    std::copy(numbers.begin(), numbers.end(), row.begin() + shift);
    constexpr std::byte kSentinel{0xA5};
    Bytes result(static_cast<std::size_t>(count * to + 32), kSentinel);
    const auto warns = convert_elements(result.data() + shift, row_of(target, count), target,
                                        row.data() + shift, row_of(source, count), source);
    ASSERT_TRUE(warns.ok()) << warns.status();
    Bytes expected = result;
    bool expected_warns = false;
    for (std::int64_t i = 0; i < count; ++i) {
      std::byte* const one = expected.data() + shift + i * to;
      expected_warns |= testing::define_conversion(one, target, numbers.data() + i * from, source);
      ASSERT_EQ(std::memcmp(one, result.data() + shift + i * to, static_cast<std::size_t>(to)), 0)
          << info_of(source).name << " " << hex(numbers.data() + i * from, from) << " is "
          << hex(result.data() + shift + i * to, to) << " as " << info_of(target).name
          << " and not " << hex(one, to);
    }
    EXPECT_EQ(*warns, expected_warns) << info_of(source).name << " to " << info_of(target).name;
    for (std::int64_t i = 0; i < shift; ++i)
      EXPECT_EQ(result[static_cast<std::size_t>(i)], kSentinel);
    for (auto at = static_cast<std::size_t>(shift + count * to); at < result.size(); ++at) {
      EXPECT_EQ(result[at], kSentinel);
    }
  }
};

TEST_F(ConvertRows, MatchTheDefinitionForAllSpecialNumbers) {
  for_each_cast([&](Number target, Number source) {
    const Bytes numbers = testing::special_numbers(source);
    for (const std::int64_t shift : {0, 3}) {
      check(target, source, numbers, shift);
      if (HasFatalFailure()) return;
    }
  });
}

// Checks one number at a time, so that other warnings cannot hide it. Lengths around
// those of vectors put each number once in a vector, once in a tail.
TEST_F(ConvertRows, ReportWhatEachNumberDoes) {
  for_each_cast([&](Number target, Number source) {
    const std::int64_t from = info_of(source).itemsize_bytes;
    const Bytes numbers = testing::special_numbers(source);
    const std::int64_t count = static_cast<std::int64_t>(numbers.size()) / from;
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
  });
}

TEST_F(ConvertRows, ConvertNothing) {
  for_each_cast([&](Number target, Number source) {
    const auto warns =
        convert_elements(nullptr, row_of(target, 0), target, nullptr, row_of(source, 0), source);
    ASSERT_TRUE(warns.ok()) << warns.status();
    EXPECT_FALSE(*warns);
  });
}

TEST(CanConvert, BetweenFloatsAndFromIntegersToFloatsOfTheirLengths) {
  int casts = 0;
  for_each_cast([&](Number, Number) { ++casts; });
  EXPECT_EQ(casts, 3 * 3 + 2 * 2);
  EXPECT_TRUE(can_convert(Number::kFloat16, Number::kFloat64));
  EXPECT_TRUE(can_convert(Number::kFloat32, Number::kInt64));
  EXPECT_FALSE(can_convert(Number::kFloat16, Number::kInt32));
  EXPECT_FALSE(can_convert(Number::kInt32, Number::kFloat32));
  EXPECT_FALSE(can_convert(Number::kInt64, Number::kInt32));
}

// Sums of two powers of two, and their neighbours: rounded to float64 first, many are ties.
TEST(ConvertLongIntegers, RoundsOnce) {
  std::vector<std::int64_t> numbers;
  for (int high = 24; high < 63; ++high) {
    for (int low = 0; low < high; ++low) {
      for (const std::int64_t step : {-1, 0, 1}) {
        const std::int64_t number = (std::int64_t{1} << high) + (std::int64_t{1} << low) + step;
        numbers.insert(numbers.end(), {number, -number});
      }
    }
  }
  const auto count = static_cast<std::int64_t>(numbers.size());
  std::vector<float> found(numbers.size());
  ASSERT_TRUE(convert_elements(reinterpret_cast<std::byte*>(found.data()),
                               row_of(Number::kFloat32, count), Number::kFloat32,
                               reinterpret_cast<const std::byte*>(numbers.data()),
                               row_of(Number::kInt64, count), Number::kInt64)
                  .ok());
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    const volatile std::int64_t number = numbers[i];  // one by one
    ASSERT_EQ(found[i], static_cast<float>(number)) << numbers[i];
  }
}

}  // namespace
}  // namespace gridbuf
