#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>

#include "gtest/gtest.h"

import gridbuf.layout;
import gridbuf.layout.view;
import gridbuf.transfer.loops;

namespace gridbuf::loops {
namespace {

std::array<std::byte, 4096> target_block;
std::array<std::byte, 4096> source_block;

StridedView view(Extents shape, Extents strides_bytes, std::int64_t offset_bytes = 0) {
  return {shape, strides_bytes, offset_bytes, 8};
}

// Two padded fields in different layouts, walked in the order of the target's memory.
TEST(Walk, IsOrderedByTheTargetAndMergedWhereBothAreDense) {
  const StridedView target = view({4, 3, 2}, {8, 32, 96});  // first dimension fastest
  const StridedView source = view({4, 3, 2}, {8, 64, 192});
  Walk walk = make_walk(target_block.data(), target, source_block.data(), source);
  order_by_target(walk);
  merge_axes(walk);
  // The source's rows are padded, so the row stays alone and the planes merge with the rows.
  ASSERT_EQ(walk.axes.size(), 2);
  EXPECT_EQ(walk.axes[0].extent, 6);
  EXPECT_EQ(walk.axes[1].extent, 4);
}

TEST(Walk, RunsTheTargetUpwards) {
  const StridedView target = view({3}, {-8}, 16);
  const StridedView source = view({3}, {8});
  Walk walk = make_walk(target_block.data(), target, source_block.data(), source);
  order_by_target(walk);
  EXPECT_EQ(walk.target, target_block.data());
  EXPECT_EQ(walk.source, source_block.data() + 16);
  EXPECT_EQ(walk.axes[0].source_stride_bytes, -8);
}

TEST(Walk, IsArrangedUnlessTheTargetHasAByteTwice) {
  const StridedView source = view({4, 3}, {24, 8});
  Walk walk = make_walk(target_block.data(), source, source_block.data(), source);
  EXPECT_TRUE(arrange(walk, 8));
  EXPECT_EQ(dense_run_bytes(walk, 8), 96);

  Walk turned = make_walk(target_block.data(), view({4, 3}, {8, 32}), source_block.data(), source);
  EXPECT_TRUE(arrange(turned, 8));
  EXPECT_EQ(turned.axes[1].extent, 4);
  EXPECT_EQ(dense_run_bytes(turned, 8), std::nullopt);

  Walk twice = make_walk(target_block.data(), view({4, 3}, {8, 8}), source_block.data(), source);
  EXPECT_FALSE(arrange(twice, 8));
  EXPECT_EQ(twice.axes.size(), 2);
  EXPECT_EQ(twice.axes[0].extent, 4);
}

TEST(Walk, LeavesOutExtentsOfOne) {
  const StridedView one = view({1, 1}, {777, -777});
  EXPECT_TRUE(make_walk(target_block.data(), one, source_block.data(), one).axes.empty());
}

TEST(Overlap, IsSureOfOrdinaryArraysOnly) {
  EXPECT_FALSE(may_overlap_itself(view({4, 3}, {64, 8})));
  EXPECT_FALSE(may_overlap_itself(view({4, 3}, {-64, 8}, 192)));
  EXPECT_TRUE(may_overlap_itself(view({4, 3}, {0, 8})));
  EXPECT_TRUE(may_overlap_itself(view({4, 3}, {8, 8})));
  EXPECT_FALSE(may_overlap_itself(view({1, 3}, {0, 8})));
}

TEST(Overlap, KnowsRangesAndEqualElements) {
  const StridedView all = view({4}, {8});
  const StridedView tail = view({2}, {8}, 16);
  const StridedView reversed = view({4}, {-8}, 24);
  const std::byte* block = source_block.data();
  EXPECT_TRUE(share_bytes(range_of(block, all), range_of(block, tail)));
  EXPECT_FALSE(share_bytes(range_of(block, all), range_of(block + 32, all)));
  EXPECT_TRUE(same_elements(source_block.data(), all, block, all));
  EXPECT_FALSE(same_elements(source_block.data(), all, block + 8, all));
  EXPECT_FALSE(same_elements(source_block.data(), all, block, reversed));
}

TEST(Packed, HasNoGaps) {
  EXPECT_EQ(packed(view({4, 3}, {100, -8}, 16)), view({4, 3}, {24, 8}));
  const std::int64_t big = std::int64_t{1} << 40;
  EXPECT_EQ(packed(view({big, big}, {0, 0})), std::nullopt);
}

}  // namespace
}  // namespace gridbuf::loops
