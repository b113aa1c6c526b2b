#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "gtest/gtest.h"

import gridbuf.layout;
import gridbuf.layout.view;
import gridbuf.transfer.loops;

namespace gridbuf::loops {
namespace {

// Addresses are numbers in a plan and never read.
std::byte* const target_block = reinterpret_cast<std::byte*>(std::uintptr_t{1} << 40);
const std::byte* const source_block = reinterpret_cast<std::byte*>(std::uintptr_t{1} << 41);

StridedView view(Extents shape, Extents strides_elements, std::int64_t itemsize = 8) {
  StridedView result{.shape = shape, .strides_bytes = strides_elements, .itemsize_bytes = itemsize};
  for (std::int64_t& stride : result.strides_bytes) stride *= itemsize;
  return result;
}

CopyPlan plan_of(const StridedView& target, const StridedView& source,
                 const CopyLimits& limits = {}) {
  Walk walk = make_walk(target_block, target, source_block, source);
  const Order order = arrange(walk, target.itemsize_bytes) ? Order::kAny : Order::kAsIndexed;
  return plan_walk(walk, target.itemsize_bytes, 1, order, limits);
}

// A cube from C order to Fortran order: planes of the first and the last dimension, and a loop over
// the middle one.
TEST(Plan, MovesPlanesOfTheTwoContiguousDimensions) {
  const std::int64_t n = 504;
  const CopyPlan plan = plan_of(view({n, n, n}, {1, n, n * n}), view({n, n, n}, {n * n, n, 1}));
  EXPECT_TRUE(plan.moves_planes && plan.streams && plan.parallel);
  EXPECT_EQ(plan.plane.rows, n);
  EXPECT_EQ(plan.plane.target_column_stride_bytes, 8 * n * n);
  EXPECT_EQ(plan.plane.source_row_stride_bytes, 8 * n * n);
  EXPECT_EQ(plan.bands.size, 16);  // two lines of doubles
}

TEST(Plan, OfEqualLayoutsIsOneRow) {
  const CopyPlan plan = plan_of(view({4, 5, 6}, {30, 6, 1}), view({4, 5, 6}, {30, 6, 1}));
  EXPECT_FALSE(plan.moves_planes);
  EXPECT_EQ(plan.rows.extent, 4 * 5 * 6);
  EXPECT_EQ(plan.tasks, 1);
}

TEST(Plan, CutsLongRowsIntoTasks) {
  const std::int64_t n = std::int64_t{1} << 24;
  const CopyPlan plan = plan_of(view({n}, {1}), view({n}, {1}), {.stream_rows_bytes = 1 << 24});
  EXPECT_EQ(plan.tasks, n * 8 / CopyLimits().piece_bytes);
  EXPECT_TRUE(plan.parallel && plan.rows.streams);
}

TEST(Plan, TakesShortDenseRowsAsElements) {
  // Three doubles at each point of a grid, the grid transposed.
  const CopyPlan plan = plan_of(view({40, 50, 3}, {3, 120, 1}), view({40, 50, 3}, {150, 3, 1}));
  EXPECT_TRUE(plan.moves_planes);
  EXPECT_EQ(plan.plane.itemsize_bytes, 24);
}

TEST(Plan, ReadsTheSourceUpwards) {
  StridedView source = view({20, 30}, {30, -1});
  source.offset_bytes = 29 * 8;
  const CopyPlan plan = plan_of(view({20, 30}, {1, 20}), source);
  EXPECT_EQ(plan.plane.source_column_stride_bytes, 8);
  EXPECT_EQ(plan.plane.target_column_stride_bytes, -20 * 8);
  EXPECT_EQ(plan.source, source_block);
}

TEST(Plan, KeepsTheOrderWhereItShows) {
  const CopyPlan plan = plan_of(view({3, 4}, {0, 0}), view({3, 4}, {1, 3}), {.parallel_bytes = 1});
  EXPECT_FALSE(plan.moves_planes || plan.parallel || plan.streams);
  EXPECT_EQ(plan.rows.extent, 4);
}

TEST(Plan, TakesManyShortRowsAtATime) {
  // Rows of 200 bytes with 56 bytes of padding.
  const CopyPlan plan = plan_of(view({1 << 20, 25}, {32, 1}), view({1 << 20, 25}, {25, 1}));
  EXPECT_EQ(plan.rows.count, 1 << 20);
  EXPECT_EQ(plan.part, CopyLimits().piece_bytes / 200);
  EXPECT_EQ(plan.tasks, ((1 << 20) - 1) / plan.part + 1);
}

TEST(Plan, TakesSmallGroupsOfRowsAtATime) {
  const CopyPlan plan = plan_of(view({8, 6, 9}, {9, 72, 1}), view({8, 6, 9}, {54, 9, 1}));
  EXPECT_EQ(plan.rows.count * plan.rows.groups, 8 * 6);
  EXPECT_EQ(plan.tasks, 1);
  EXPECT_EQ(
      plan_of(view({512, 600, 9}, {9, 9 * 512, 1}), view({512, 600, 9}, {5400, 9, 1})).rows.groups,
      1);
}

TEST(Plan, LeavesSmallCopiesToOneThreadAndTheCaches) {
  const std::int64_t n = 48;
  const CopyPlan plan = plan_of(view({n, n, n}, {1, n, n * n}), view({n, n, n}, {n * n, n, 1}));
  EXPECT_FALSE(plan.parallel || plan.streams);
  // In the caches, the planes along the middle dimension are moved together, and squares are in the
  // innermost loop over these planes.
  EXPECT_EQ(plan.plane.count, n);
  EXPECT_EQ(plan.plane.source_step_bytes, 8 * n);
  EXPECT_EQ(plan.plane.nest[2], BlockSide::kPlanes);
  EXPECT_EQ(plan.tasks, plan.bands.count * plan.columns.count * plan.planes.count);
}

TEST(Plan, StreamsWhatIsLongerThanTheCaches) {
  const StridedView target = view({64, 64, 64}, {1, 64, 64 * 64});
  const StridedView source = view({64, 64, 64}, {64 * 64, 64, 1});
  Walk walk = make_walk(nullptr, target, nullptr, source);
  ASSERT_TRUE(arrange(walk, 8));
  for (const bool is_longer : {true, false}) {
    const CopyLimits limits{.stream_bytes = std::int64_t{1} << (is_longer ? 20 : 40)};
    EXPECT_EQ(plan_walk(walk, 8, 1, Order::kAny, limits).streams, is_longer);
  }
  EXPECT_EQ(CopyLimits().stream_bytes, cache_bytes() / 4);
  EXPECT_EQ(FillLimits().stream_bytes, 8 * cache_bytes());
}

// For all loops, every cut of the range runs every task once.
TEST(Plan, TasksAreACountedSpace) {
  const StridedView target = view({7, 33, 21}, {1, 7, 7 * 33});
  const StridedView source = view({7, 33, 21}, {33 * 21, 21, 1});
  std::vector<double> from(7 * 33 * 21);
  for (std::size_t i = 0; i < from.size(); ++i) from[i] = static_cast<double>(i);
  std::vector<double> all(from.size());
  std::vector<double> pieces(from.size());
  for (std::vector<double>* to : {&all, &pieces}) {
    Walk walk = make_walk(reinterpret_cast<std::byte*>(to->data()), target,
                          reinterpret_cast<const std::byte*>(from.data()), source);
    ASSERT_TRUE(arrange(walk, 8));
    for (const std::int64_t stream_bytes : {std::int64_t{1}, std::int64_t{1} << 40}) {
      std::fill(to->begin(), to->end(), 0.0);
      const CopyPlan plan =
          plan_walk(walk, 8, 1, Order::kAny,
                    {.stream_bytes = stream_bytes, .parallel_bytes = 1, .piece_bytes = 8});
      ASSERT_GT(plan.tasks, 3);
      const std::int64_t step = to == &all ? plan.tasks : 3;
      for (std::int64_t end = plan.tasks; end > 0; end -= step) {
        run(plan, simd(), end < step ? 0 : end - step, end);
      }
      EXPECT_EQ((*to)[1], from[33 * 21]);
    }
  }
  EXPECT_EQ(all, pieces);
}

}  // namespace
}  // namespace gridbuf::loops
