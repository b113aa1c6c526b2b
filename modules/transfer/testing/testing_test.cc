#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <set>
#include <span>
#include <vector>

#include "gtest/gtest.h"

import gridbuf.layout;
import gridbuf.layout.view;
import gridbuf.transfer.testing;

namespace gridbuf::testing {
namespace {

Bytes bytes_of(std::initializer_list<int> values) {
  Bytes bytes;
  for (const int value : values) bytes.push_back(static_cast<std::byte>(value));
  return bytes;
}

// Two rows of three bytes, padded to four, from their columns.
TEST(ExpectedCopy, WritesElementsAndKeepsPadding) {
  const StridedView rows{.shape = {2, 3}, .strides_bytes = {4, 1}, .itemsize_bytes = 1};
  const StridedView columns{.shape = {2, 3}, .strides_bytes = {1, 2}, .itemsize_bytes = 1};
  EXPECT_EQ(expected_copy(Bytes(8), rows, bytes_of({1, 2, 3, 4, 5, 6}), columns),
            bytes_of({1, 3, 5, 0, 2, 4, 6, 0}));
}

TEST(ExpectedCopy, SwapsTheBytesOfEachUnit) {
  const StridedView view{.shape = {2}, .strides_bytes = {4}, .itemsize_bytes = 4};
  EXPECT_EQ(expected_copy(Bytes(8), view, bytes_of({1, 2, 3, 4, 5, 6, 7, 8}), view, 2),
            bytes_of({2, 1, 4, 3, 6, 5, 8, 7}));
}

TEST(ExpectedCopy, ReadsAllBeforeItWrites) {
  Bytes bytes = bytes_of({1, 2, 3, 4});
  const StridedView high{
      .shape = {3}, .strides_bytes = {1}, .offset_bytes = 1, .itemsize_bytes = 1};
  const StridedView low{.shape = {3}, .strides_bytes = {1}, .itemsize_bytes = 1};
  define_copy(bytes.data(), high, bytes.data(), low);
  EXPECT_EQ(bytes, bytes_of({1, 1, 2, 3}));
}

TEST(ExpectedCopy, WritesInRowMajorOrder) {
  const StridedView same{.shape = {2, 2}, .strides_bytes = {0, 0}, .itemsize_bytes = 1};
  const StridedView source{.shape = {2, 2}, .strides_bytes = {1, 2}, .itemsize_bytes = 1};
  EXPECT_EQ(expected_copy(Bytes(1), same, bytes_of({1, 2, 3, 4}), source), bytes_of({4}));
}

TEST(RandomBytes, AreThoseOfTheSeed) {
  EXPECT_EQ(random_bytes(100, 1), random_bytes(100, 1));
  EXPECT_NE(random_bytes(100, 1), random_bytes(100, 2));
}

// The views stay in their blocks, and share bytes only where their description allows it.
TEST(RandomViews, KeepTheirPromises) {
  RandomViews random(1);
  for (int round = 0; round < 3000; ++round) {
    const Extents shape = random.once_in(2) ? random.small_shape() : random.edge_shape(300);
    const std::int64_t itemsize = random.itemsize_bytes();
    const StridedView separate = random.separate(shape, itemsize);
    const auto hull = byte_hull(separate);
    ASSERT_TRUE(hull);
    ASSERT_GE(hull->lowest_bytes, 0) << to_string(separate);
    std::vector<int> uses(static_cast<std::size_t>(hull->highest_bytes), 0);
    for_each_index(shape, [&](const Extents& index) {
      for (std::int64_t i = 0; i < itemsize; ++i) {
        ++uses[static_cast<std::size_t>(byte_offset(separate, index) + i)];
      }
    });
    ASSERT_TRUE(std::ranges::all_of(uses, [](int count) { return count <= 1; }));
    for (const StridedView& view :
         {random.any(shape, itemsize), random.repeated(shape, itemsize)}) {
      ASSERT_TRUE(byte_hull(view));
      ASSERT_GE(byte_hull(view)->lowest_bytes, 0) << to_string(view);
      ASSERT_EQ(view.shape, shape);
    }
    ASSERT_EQ(itemsize % std::max<std::int64_t>(random.swap_unit_bytes(itemsize), 1), 0);
  }
}

// The cases on which the tests of copies rely are drawn often.
TEST(RandomViews, DrawEveryEdgeAndEveryItemsize) {
  RandomViews random(2);
  std::set<std::int64_t> extents;
  std::set<std::int64_t> itemsizes;
  for (int round = 0; round < 1000; ++round) {
    for (const std::int64_t extent : random.edge_shape(513 * 513)) extents.insert(extent);
    itemsizes.insert(random.itemsize_bytes());
  }
  for (const std::int64_t edge : {8, 16, 32, 64, 128, 256, 512}) {
    for (const std::int64_t extent : {edge - 1, edge, edge + 1}) {
      EXPECT_TRUE(extents.contains(extent)) << extent;
    }
  }
  EXPECT_EQ(itemsizes.size(), 20u);
}

TEST(FencedMemory, EndsWhereItsFencesBegin) {
  FencedMemory memory(100);
  const std::span<std::byte> first = memory.behind_fence(100);
  std::ranges::fill(first, std::byte{1});
  const std::span<std::byte> last = memory.before_fence(10);
  std::ranges::fill(last, std::byte{2});
  EXPECT_EQ(first.size(), 100u);
  EXPECT_EQ(last.size(), 10u);
}

TEST(FencedMemoryDeathTest, EndsTheProcessOutside) {
  FencedMemory memory(100);
  const auto touch = [](std::byte* byte) { *static_cast<volatile std::byte*>(byte) = {}; };
  EXPECT_DEATH(touch(memory.behind_fence(10).data() - 1), "");
  const std::span<std::byte> last = memory.before_fence(10);
  EXPECT_DEATH(touch(last.data() + last.size()), "");
}

}  // namespace
}  // namespace gridbuf::testing
