#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include "gtest/gtest.h"

import gridbuf.transfer.convert.steps;
import gridbuf.transfer.simd;

namespace gridbuf::steps {
namespace {

using Bytes = std::vector<std::byte>;

Bytes counted(std::int64_t length_bytes) {
  Bytes bytes(static_cast<std::size_t>(length_bytes));
  for (std::size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<std::byte>(i * 7 % 251);
  return bytes;
}

constexpr std::array<std::int64_t, 5> kItemsizes{1, 2, 4, 8, 16};
// Around the lengths of vectors and lines.
constexpr std::array<std::int64_t, 10> kCounts{0, 1, 7, 8, 9, 31, 63, 64, 65, 131};

class Paths : public ::testing::TestWithParam<Simd> {};

TEST_P(Paths, ScatterWhereTheMaskIsNotZero) {
  for (const std::int64_t itemsize : kItemsizes) {
    for (const std::int64_t stride : {itemsize, 3 * itemsize, -itemsize}) {
      for (const std::int64_t count : kCounts) {
        const Bytes dense = counted(count * itemsize);
        Bytes mask(static_cast<std::size_t>(count));
        for (std::size_t i = 0; i < mask.size(); ++i) mask[i] = std::byte{i % 3 == 0 || i % 7 == 1};
        if (count > 1) mask[1] = std::byte{0x80};
        const std::int64_t first = stride < 0 ? -stride * std::max<std::int64_t>(count - 1, 0) : 0;
        Bytes target(static_cast<std::size_t>(3 * itemsize * count + 1), std::byte{0xEE});
        Bytes expected = target;
        Bytes kept;
        for (std::int64_t i = 0; i < count; ++i) {
          if (mask[static_cast<std::size_t>(i)] == std::byte{0}) continue;
          const auto element = dense.begin() + i * itemsize;
          std::copy_n(element, itemsize, expected.begin() + first + i * stride);
          kept.insert(kept.end(), element, element + itemsize);
        }
        scatter_where(target.data() + first, stride, dense.data(), mask.data(), count, itemsize,
                      GetParam());
        EXPECT_EQ(target, expected) << itemsize << " " << stride << " " << count;
        Bytes chosen(dense.size());
        const std::int64_t found =
            compress(chosen.data(), dense.data(), mask.data(), count, itemsize);
        chosen.resize(static_cast<std::size_t>(found * itemsize));
        EXPECT_EQ(chosen, kept);
      }
    }
  }
}

TEST_P(Paths, SwapBytesApartAndInPlace) {
  for (const std::int64_t unit : {2, 4, 8}) {
    for (const std::int64_t units : kCounts) {
      const Bytes source = counted(units * unit);
      Bytes expected = source;
      for (auto at = expected.begin(); at != expected.end(); at += unit) {
        std::reverse(at, at + unit);
      }
      Bytes apart(source.size());
      swap_bytes(apart.data(), source.data(), units, unit, GetParam());
      EXPECT_EQ(apart, expected);
      Bytes in_place = source;
      swap_bytes(in_place.data(), in_place.data(), units, unit, GetParam());
      EXPECT_EQ(in_place, expected);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Steps, Paths, ::testing::ValuesIn(supported_simd()),
                         [](const auto& path) { return std::string(to_string(path.param)); });

TEST(Selected, SaysNoneSomeOrAll) {
  Bytes mask(100);
  EXPECT_EQ(selected(mask.data(), 100), Selected::kNone);
  mask[99] = std::byte{0x40};
  EXPECT_EQ(selected(mask.data(), 100), Selected::kSome);
  EXPECT_EQ(selected(mask.data(), 99), Selected::kNone);
  std::fill(mask.begin(), mask.end(), std::byte{2});
  EXPECT_EQ(selected(mask.data(), 100), Selected::kAll);
}

TEST(IsKnown, ForPowersOfTwoUpTo16) {
  for (const std::int64_t itemsize : kItemsizes) EXPECT_TRUE(is_known(itemsize));
  for (const std::int64_t itemsize : {0, 3, 6, 12, 24, 32}) EXPECT_FALSE(is_known(itemsize));
}

// [example]
// The odd ones of four big-endian numbers of 16 bits, as this machine has them; returns how many.
std::int64_t odd_ones(std::uint16_t* odd, const std::byte* numbers) {
  std::array<std::uint16_t, 4> all;
  auto* const bytes = reinterpret_cast<std::byte*>(all.data());
  swap_bytes(bytes, numbers, /*units=*/4, /*unit_bytes=*/2, simd());
  std::array<std::byte, 4> mask;
  for (std::size_t i = 0; i < 4; ++i) mask[i] = std::byte{all[i] % 2 == 1};
  return compress(reinterpret_cast<std::byte*>(odd), bytes, mask.data(), 4, 2);
}
// [/example]

TEST(Example, OfTheReadme) {
  const std::array<unsigned char, 8> bytes{0, 1, 0, 2, 1, 3, 0, 4};
  std::array<std::uint16_t, 4> odd{};
  EXPECT_EQ(odd_ones(odd.data(), reinterpret_cast<const std::byte*>(bytes.data())), 2);
  EXPECT_EQ(odd, (std::array<std::uint16_t, 4>{1, 0x103, 0, 0}));
}

}  // namespace
}  // namespace gridbuf::steps
