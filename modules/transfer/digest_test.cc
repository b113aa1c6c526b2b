#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <numeric>
#include <random>
#include <span>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "gtest/gtest.h"

import gridbuf.base;
import gridbuf.layout;
import gridbuf.layout.view;
import gridbuf.transfer;

namespace gridbuf {
namespace {

using Bytes = std::vector<std::byte>;
using Names = std::vector<DigestDim>;

// Memory of random bytes, and a view of it.
struct Field {
  Bytes bytes;
  StridedView view;
};

// A field in any order of dimensions, padded, and reversed along some dimensions.
Field make_field(std::mt19937& random, const Extents& shape, std::int64_t itemsize_bytes) {
  const int ndim = shape.size();
  std::vector<int> order(static_cast<std::size_t>(ndim));
  std::iota(order.begin(), order.end(), 0);
  std::ranges::shuffle(order, random);
  StridedView view{
      .shape = shape, .strides_bytes = Extents(ndim, 0), .itemsize_bytes = itemsize_bytes};
  std::int64_t step_bytes = itemsize_bytes + static_cast<std::int64_t>(random() % 3);
  for (const int axis : order) {
    view.strides_bytes[axis] = step_bytes;
    if (random() % 3 == 0) {
      view.offset_bytes += step_bytes * (shape[axis] - 1);
      view.strides_bytes[axis] = -step_bytes;
    }
    step_bytes *= shape[axis] + static_cast<std::int64_t>(random() % 3);
  }
  Bytes bytes(static_cast<std::size_t>(step_bytes + itemsize_bytes));
  for (std::byte& byte : bytes) byte = static_cast<std::byte>(random());
  return {std::move(bytes), view};
}

Digest digest_of(const Field& field, const Names& names, std::string_view type = "float64") {
  const absl::StatusOr<Digest> digest =
      digest_elements(field.bytes.data(), field.view, names, type);
  EXPECT_TRUE(digest.ok()) << digest.status().message();
  return *digest;
}

const Names kNames{{"I", 0}, {"J", 0}, {"K", 0}};

TEST(DigestTest, LayoutPaddingAndOrderOfDimensionsDoNotMatter) {
  std::mt19937 random(1);
  for (int round = 0; round < 300; ++round) {
    Extents shape;
    for (int axis = 0; axis < 3; ++axis)
      shape.push_back(1 + static_cast<std::int64_t>(random() % 9));
    const std::int64_t itemsize_bytes = std::array{1, 2, 4, 8, 16, 3, 12}[random() % 7];
    const Field one = make_field(random, shape, itemsize_bytes);
    Field other = make_field(random, shape, itemsize_bytes);
    ASSERT_TRUE(copy_elements(other.bytes.data(), other.view, one.bytes.data(), one.view).ok());
    EXPECT_EQ(digest_of(one, kNames), digest_of(other, kNames));

    Axes axes{2, 0, 1};
    const absl::StatusOr<StridedView> turned = transpose(other.view, axes);
    ASSERT_TRUE(turned.ok());
    other.view = *turned;
    EXPECT_EQ(digest_of(one, kNames), digest_of(other, {kNames[2], kNames[0], kNames[1]}));
  }
}

// Parts at their global indices, also where the high half of an index changes.
TEST(DigestTest, DigestsOfPartsAddUp) {
  std::mt19937 random(2);
  for (const std::int64_t first :
       {std::int64_t{0}, std::int64_t{-7}, (std::int64_t{1} << 32) - 3}) {
    for (const std::int64_t extent : {std::int64_t{12}, std::int64_t{9001}}) {
      const Field whole = make_field(random, {extent, 3, 2}, 8);
      Names names{{"Cell", first}, {"K", 5}, {"0", 0}};
      Digest sum;
      for (std::int64_t begin = 0; begin < extent;) {
        const std::int64_t end =
            std::min(extent, begin + 1 + static_cast<std::int64_t>(random() % 4000));
        Field part = whole;
        part.view.offset_bytes += begin * part.view.strides_bytes[0];
        part.view.shape[0] = end - begin;
        names[0].first_index = first + begin;
        sum += digest_of(part, names);
        begin = end;
      }
      names[0].first_index = first;
      EXPECT_EQ(sum, digest_of(whole, names));
    }
  }
}

TEST(DigestTest, AllInstructionSetsGiveTheSame) {
  std::mt19937 random(3);
  const Simd before = simd();
  for (const std::int64_t itemsize_bytes : {1, 2, 4, 8, 16}) {
    const Field field = make_field(random, {3, 67, 1}, itemsize_bytes);
    std::vector<std::string> digests;
    for (const Simd path : supported_simd()) {
      ASSERT_TRUE(set_simd(path).ok());
      digests.push_back(to_string(digest_of(field, kNames)));
    }
    EXPECT_EQ(std::ranges::count(digests, digests.front()), std::ssize(digests));
  }
  ASSERT_TRUE(set_simd(before).ok());
}

// The definition, so that digests can be compared between versions of gridbuf and machines.
TEST(DigestTest, ValuesOfThisVersion) {
  std::array<double, 6> values{0.0, 1.0, -2.5, 3.0e100, -0.0, 5.0};
  Bytes bytes(sizeof values);
  std::memcpy(bytes.data(), values.data(), sizeof values);
  const Field field{bytes, {.shape = {2, 3}, .strides_bytes = {24, 8}, .itemsize_bytes = 8}};
  EXPECT_EQ(to_string(digest_of(field, {{"I", 0}, {"J", 0}})), "2696de08c312f226054163ab380db82e");
}

TEST(DigestTest, EachChangeOfABitAndEachSwapShows) {
  std::mt19937 random(4);
  for (const std::int64_t itemsize_bytes : {1, 2, 4, 8}) {
    Field field = make_field(random, {5, 6, 7}, itemsize_bytes);
    const Digest before = digest_of(field, kNames);
    const auto random_place = [&] {
      Extents index;
      for (const std::int64_t extent : field.view.shape) {
        index.push_back(static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(extent)));
      }
      return field.bytes.data() + byte_offset(field.view, index);
    };
    for (int round = 0; round < 125000; ++round) {
      std::byte* const at = random_place() + random() % static_cast<std::uint64_t>(itemsize_bytes);
      const auto bit = static_cast<std::byte>(1U << (random() % 8));
      *at ^= bit;
      const Digest after = digest_of(field, kNames);
      EXPECT_NE(after.sums[0], before.sums[0]);
      EXPECT_NE(after.sums[1], before.sums[1]);
      *at ^= bit;
      std::byte* const one = random_place();
      std::byte* const other = random_place();
      if (std::memcmp(one, other, static_cast<std::size_t>(itemsize_bytes)) == 0) continue;
      std::swap_ranges(one, one + itemsize_bytes, other);
      EXPECT_NE(digest_of(field, kNames), before);
      std::swap_ranges(one, one + itemsize_bytes, other);
    }
  }
}

TEST(DigestTest, ShapeTypeNamesAndFirstIndexMatter) {
  const auto zeros = [](std::int64_t extent) {
    return Field{Bytes(static_cast<std::size_t>(8 * extent)),
                 {.shape = {extent}, .strides_bytes = {8}, .itemsize_bytes = 8}};
  };
  const Digest first = digest_of(zeros(3), {{"I", 0}});
  EXPECT_NE(first, digest_of(zeros(4), {{"I", 0}}));
  EXPECT_NE(first, digest_of(zeros(3), {{"J", 0}}));
  EXPECT_NE(first, digest_of(zeros(3), {{"I", 1}}));
  EXPECT_NE(first, digest_of(zeros(3), {{"I", 0}}, "int64"));
  EXPECT_EQ(digest_of(zeros(0), {{"I", 0}}), Digest{});
  const Field scalar{Bytes(8), {.itemsize_bytes = 8}};
  EXPECT_NE(digest_of(scalar, {}), Digest{});
}

// A gap of a structured type does not have a value.
TEST(DigestTest, OnlyThePartsOfAnElementCount) {
  std::mt19937 random(5);
  Field field = make_field(random, {4, 3, 2}, 16);
  const ElementParts parts{
      {.shape = {}, .itemsize_bytes = 4},
      {.shape = {2}, .strides_bytes = {4}, .offset_bytes = 8, .itemsize_bytes = 4}};
  const auto digest = [&] {
    return *digest_elements(field.bytes.data(), field.view, kNames, "V16", &parts);
  };
  const Digest before = digest();
  std::byte* const element = field.bytes.data() + byte_offset(field.view, {1, 2, 0});
  element[5] ^= std::byte{1};
  EXPECT_EQ(digest(), before);
  element[12] ^= std::byte{1};
  EXPECT_NE(digest(), before);
}

TEST(DigestTest, RefusesElementsWithoutMemory) {
  const StridedView view{.shape = {2}, .strides_bytes = {8}, .itemsize_bytes = 8};
  const Names names{{"I", 0}};
  EXPECT_FALSE(digest_elements(nullptr, view, names, "float64").ok());
}

}  // namespace
}  // namespace gridbuf
