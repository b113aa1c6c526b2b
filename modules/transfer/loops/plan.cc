module;

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>

module gridbuf.transfer.loops;

import gridbuf.base;
import gridbuf.layout;
import gridbuf.layout.view;

namespace gridbuf::loops {
namespace {

// Dense rows up to this length become elements of the copy.
constexpr std::int64_t kLongestElementBytes = kLineBytes;
// Shorter rows have too many partly streamed cache lines.
constexpr std::int64_t kShortestStreamBytes = 4 * kLineBytes;
// As above, for columns of a plane, unless they are whole cache lines.
constexpr std::int64_t kShortestColumnBytes = 2 * kLineBytes;
// Longer elements fill whole cache lines without bands, and too few fit in the scratch memory of a
// band.
constexpr std::int64_t kLongestStreamedBytes = 4 * kLineBytes;
// The part of a source row in a task, so that bands that share lines find them in the second-level
// cache.
constexpr std::int64_t kPartBytes = std::int64_t{1} << 13;

// Processors prefetch along longer rows.
constexpr std::int64_t kStreamedRowBytes = std::int64_t{1} << 9;
// The work of a task on planes in the caches: small enough to share out a mebibyte.
constexpr std::int64_t kBlockBytes = std::int64_t{1} << 16;
// By BlockSide.
constexpr std::array kCounts{Count::kBands, Count::kColumns, Count::kPlanes};

// The axis in [0, end) along which the source is densest. Ignores strides of 0. -1 if there is not
// one.
int densest_of(const SmallVec<Axis>& axes, int end) {
  int densest = -1;
  for (int i = end - 1; i >= 0; --i) {
    if (axes[i].source_stride_bytes == 0) continue;  // repeats the elements: a loop
    if (densest < 0 ||
        magnitude(axes[i].source_stride_bytes) < magnitude(axes[densest].source_stride_bytes)) {
      densest = i;
    }
  }
  return densest;
}

std::int64_t elements_of(const Walk& walk) {
  std::int64_t elements = 1;
  for (const Axis& axis : walk.axes) elements *= axis.extent;
  return elements;
}

Axis take(SmallVec<Axis>& axes, int at) {
  const Axis axis = axes[at];
  axes.erase(at);
  return axis;
}

void add_steps(CopyPlan& plan, const SmallVec<Axis>& axes) {
  for (const Axis& axis : axes) {
    plan.loops.push_back(
        {Count::kSteps, axis.extent, axis.target_stride_bytes, axis.source_stride_bytes});
  }
}

// Cuts an extent into parts, for a loop of them.
Loop parts_loop(CopyPlan& plan, Count count, std::int64_t extent, std::int64_t part) {
  plan.part = std::min(extent, std::max<std::int64_t>(1, part));
  return {count, (extent - 1) / plan.part + 1};
}

// Long rows are cut; a task has many short rows.
void plan_rows(CopyPlan& plan, Walk walk, std::int64_t itemsize_bytes, std::int64_t total_bytes,
               const CopyLimits& limits) {
  Axis innermost{1, itemsize_bytes, itemsize_bytes};
  if (!walk.axes.empty()) innermost = take(walk.axes, walk.axes.size() - 1);
  const std::int64_t row_bytes = innermost.extent * itemsize_bytes;
  plan.streams =
      plan.streams && total_bytes >= limits.stream_rows_bytes && row_bytes >= kShortestStreamBytes;
  plan.rows = {.extent = innermost.extent,
               .itemsize_bytes = itemsize_bytes,
               .target_stride_bytes = innermost.target_stride_bytes,
               .source_stride_bytes = innermost.source_stride_bytes,
               .swap_unit_bytes = plan.swap_unit_bytes,
               .streams = plan.streams};
  Loop parts =
      parts_loop(plan, Count::kPieces, innermost.extent, limits.piece_bytes / itemsize_bytes);
  if (parts.extent == 1 && !walk.axes.empty()) {
    const Axis rows = take(walk.axes, walk.axes.size() - 1);
    plan.rows.count = rows.extent;
    plan.rows.target_step_bytes = rows.target_stride_bytes;
    plan.rows.source_step_bytes = rows.source_stride_bytes;
    parts = parts_loop(plan, Count::kRows, rows.extent, limits.piece_bytes / row_bytes);
  }
  // A task has all rows of the innermost loop if these are few and short.
  if (parts.extent == 1 && !walk.axes.empty()) {
    const Axis& groups = walk.axes[walk.axes.size() - 1];
    if (groups.extent <= limits.piece_bytes / row_bytes / plan.rows.count) {
      plan.rows.groups = groups.extent;
      plan.rows.target_group_bytes = groups.target_stride_bytes;
      plan.rows.source_group_bytes = groups.source_stride_bytes;
      walk.axes.erase(walk.axes.size() - 1);
    }
  }
  add_steps(plan, walk.axes);
  plan.loops.push_back(parts);
}

// The axis of the columns: along it the source is denser than along the target's innermost axis. -1
// without such an axis.
int columns_of(const SmallVec<Axis>& axes) {
  const int innermost = axes.size() - 1;
  const int densest = densest_of(axes, innermost);
  if (densest < 0) return -1;
  const std::int64_t stride = magnitude(axes[densest].source_stride_bytes);
  return stride < magnitude(axes[innermost].source_stride_bytes) ? densest : -1;
}

// Adds the loops over the remaining axes, in the order of the source.
void add_sorted_steps(CopyPlan& plan, const SmallVec<Axis>& axes) {
  add_steps(plan, axes);
  std::sort(plan.loops.begin(), plan.loops.end(), [](const Loop& a, const Loop& b) {
    return magnitude(a.source_stride_bytes) > magnitude(b.source_stride_bytes);
  });
}

// Bands, in parts along the columns.
void cut_for_streams(CopyPlan& plan, Walk walk) {
  const Plane& plane = plan.plane;
  // Bands begin at cache lines only if all planes begin at the same place of a line.
  plan.bands = bands_of(plane);
  for (const Axis& axis : walk.axes) {
    if (axis.target_stride_bytes % kLineBytes != 0) plan.bands.share_lines = true;
  }
  const std::int64_t part = std::max<std::int64_t>(1, kPartBytes / plane.itemsize_bytes);
  plan.columns = {.extent = plane.columns,
                  .first = std::min(part, plane.columns),
                  .size = part,
                  .count = (plane.columns - 1) / part + 1};
  const Loop bands{Count::kBands, plan.bands.count, 0,
                   plane.source_row_stride_bytes * plan.bands.size};
  if (!plan.bands.share_lines) plan.loops.push_back(bands);
  add_sorted_steps(plan, walk.axes);
  plan.loops.push_back({Count::kColumns, plan.columns.count});
  if (plan.bands.share_lines) plan.loops.push_back(bands);
}

// Blocks of several planes.
void cut_for_caches(CopyPlan& plan, Walk walk, bool in_caches, const CopyLimits& limits) {
  const int planes_axis = densest_of(walk.axes, walk.axes.size());
  // A swapped block is of one plane. Outside the caches, long rows of the source are read as
  // streams.
  const bool together =
      plan.swap_unit_bytes == 1 &&
      (in_caches || plan.plane.columns * plan.plane.itemsize_bytes < kStreamedRowBytes);
  if (planes_axis >= 0 && together) {
    const Axis planes = take(walk.axes, planes_axis);
    plan.plane.count = planes.extent;
    plan.plane.target_step_bytes = planes.target_stride_bytes;
    plan.plane.source_step_bytes = planes.source_stride_bytes;
  }
  const Blocks blocks = blocks_of(plan.plane, std::min(limits.piece_bytes, kBlockBytes));
  plan.plane.nest = blocks.nest;
  const std::array target_strides{plan.plane.target_row_stride_bytes,
                                  plan.plane.target_column_stride_bytes,
                                  plan.plane.target_step_bytes};
  plan.bands = {blocks.cuts[0], false};
  plan.columns = blocks.cuts[1];
  plan.planes = blocks.cuts[2];
  // In the order of the target, so that threads write to separate pages.
  add_steps(plan, walk.axes);
  for (std::size_t side = 0; side < blocks.cuts.size(); ++side) {
    const Cut& cut = blocks.cuts[side];
    plan.loops.push_back({kCounts[side], cut.count, cut.size * target_strides[side]});
  }
  std::sort(plan.loops.begin(), plan.loops.end(), [](const Loop& a, const Loop& b) {
    return magnitude(a.target_stride_bytes) > magnitude(b.target_stride_bytes);
  });
}

void plan_planes(CopyPlan& plan, Walk walk, std::int64_t itemsize_bytes, int columns_axis,
                 std::int64_t total_bytes, const CopyLimits& limits) {
  plan.moves_planes = true;
  Axis columns = take(walk.axes, columns_axis);
  const Axis rows = take(walk.axes, walk.axes.size() - 1);
  plan.target = walk.target;
  plan.source = walk.source;
  if (columns.source_stride_bytes < 0) {  // so that the source is read upwards
    plan.target += (columns.extent - 1) * columns.target_stride_bytes;
    plan.source += (columns.extent - 1) * columns.source_stride_bytes;
    columns.target_stride_bytes = -columns.target_stride_bytes;
    columns.source_stride_bytes = -columns.source_stride_bytes;
  }
  const std::int64_t column_bytes = rows.extent * itemsize_bytes;
  const bool whole_lines =
      columns.target_stride_bytes % kLineBytes == 0 && column_bytes % kLineBytes == 0;
  plan.plane = {.target = plan.target,
                .source = plan.source,
                .itemsize_bytes = itemsize_bytes,
                .rows = rows.extent,
                .columns = columns.extent,
                .target_row_stride_bytes = rows.target_stride_bytes,
                .target_column_stride_bytes = columns.target_stride_bytes,
                .source_row_stride_bytes = rows.source_stride_bytes,
                .source_column_stride_bytes = columns.source_stride_bytes,
                .streams = false};
  // Adjacent columns complete the cache lines of each other in the caches.
  const bool adjacent = columns.target_stride_bytes == column_bytes;
  const std::int64_t shortest_bytes = adjacent ? 2 * kShortestColumnBytes : kShortestColumnBytes;
  plan.streams = plan.streams && total_bytes >= limits.stream_bytes &&
                 itemsize_bytes <= kLongestStreamedBytes &&
                 rows.target_stride_bytes == itemsize_bytes &&
                 (whole_lines || column_bytes >= shortest_bytes);
  plan.plane.streams = plan.streams;
  if (plan.streams) {
    cut_for_streams(plan, walk);
  } else {
    cut_for_caches(plan, walk, total_bytes < limits.stream_bytes, limits);
  }
}

// Rows that are dense on both sides and shorter than a cache line become the elements.
std::int64_t fuse_elements(Walk& walk, std::int64_t itemsize_bytes) {
  while (walk.axes.size() > 1) {
    const Axis& innermost = walk.axes[walk.axes.size() - 1];
    const std::int64_t length_bytes = innermost.extent * itemsize_bytes;
    if (innermost.target_stride_bytes != itemsize_bytes ||
        innermost.source_stride_bytes != itemsize_bytes || length_bytes >= kLongestElementBytes) {
      break;
    }
    itemsize_bytes = length_bytes;
    walk.axes.erase(walk.axes.size() - 1);
  }
  return itemsize_bytes;
}

void count_tasks(CopyPlan& plan, std::int64_t total_bytes, const CopyLimits& limits) {
  for (const Loop& loop : plan.loops) {
    plan.tasks *= loop.extent;
    const bool steps = loop.count == Count::kSteps;
    plan.axes.push_back(
        {loop.extent, steps ? loop.target_stride_bytes : 0, steps ? loop.source_stride_bytes : 0});
  }
  const std::int64_t task_bytes = std::max<std::int64_t>(1, total_bytes / plan.tasks);
  plan.tasks_of_a_piece = std::max<std::int64_t>(1, limits.piece_bytes / task_bytes);
}

// ---- Running. ----

// The index of the loop of that unit; 0 without one.
std::int64_t index_of(const CopyPlan& plan, const Odometer& at, Count count) {
  for (int i = plan.loops.size() - 1; i >= 0; --i) {
    if (plan.loops[i].count == count) return at[i];
  }
  return 0;
}

void run_rows(const CopyPlan& plan, Simd simd, std::int64_t begin, std::int64_t end) {
  const MoveRows move_rows = move_rows_with(simd, plan.rows);
  Odometer at(plan.axes, plan.target, plan.source, begin);
  Rows rows = plan.rows;
  for (std::int64_t task = begin; task < end; ++task, at.next()) {
    const std::int64_t element = index_of(plan, at, Count::kPieces) * plan.part;
    const std::int64_t row = index_of(plan, at, Count::kRows) * plan.part;
    if (plan.rows.count == 1) {
      rows.extent = std::min(plan.part, plan.rows.extent - element);
    } else {
      rows.count = std::min(plan.part, plan.rows.count - row);
    }
    move_rows(rows, at.target() + element * rows.target_stride_bytes + row * rows.target_step_bytes,
              at.source() + element * rows.source_stride_bytes + row * rows.source_step_bytes);
  }
}

// Swaps the bytes of a band that was just written and is in the caches.
void swap_band(const CopyPlan& plan, const Plane& plane, const Part& band) {
  const Rows column{.extent = band.length,
                    .itemsize_bytes = plane.itemsize_bytes,
                    .target_stride_bytes = plane.target_row_stride_bytes,
                    .source_stride_bytes = 0};
  std::byte* target = plane.target + band.begin * plane.target_row_stride_bytes;
  for (std::int64_t i = 0; i < plane.columns; ++i) {
    swap_row(column, target, plan.swap_unit_bytes);
    target += plane.target_column_stride_bytes;
  }
}

// Sets the plane to its part in a task, and returns the band.
Part part_of(const CopyPlan& plan, const Odometer& at, Plane& plane) {
  const Part columns = plan.columns[index_of(plan, at, Count::kColumns)];
  const Part planes = plan.planes[index_of(plan, at, Count::kPlanes)];
  plane.columns = columns.length;
  plane.count = planes.length;
  plane.target = at.target() + columns.begin * plane.target_column_stride_bytes +
                 planes.begin * plane.target_step_bytes;
  plane.source = at.source() + columns.begin * plane.source_column_stride_bytes +
                 planes.begin * plane.source_step_bytes;
  return plan.bands[index_of(plan, at, Count::kBands)];
}

void run_planes(const CopyPlan& plan, Simd simd, std::int64_t begin, std::int64_t end) {
  const MoveBand move_band = move_band_with(simd);
  Odometer at(plan.axes, plan.target, plan.source, begin);
  Plane next = plan.plane;
  Part next_band = part_of(plan, at, next);
  for (std::int64_t task = begin; task < end; ++task) {
    Plane plane = next;
    const Part band = next_band;
    if (task + 1 < end) {
      at.next();
      next_band = part_of(plan, at, next);
      plane.next = next.source + next_band.begin * next.source_row_stride_bytes;
    }
    move_band(plane, band);
    if (plan.swap_unit_bytes > 1) swap_band(plan, plane, band);
  }
}

}  // namespace

std::int64_t cache_bytes() {
  static const std::int64_t bytes = system::last_cache_bytes();
  return bytes;
}

namespace {

// Before any thread: see modules/base/fork.h.
[[maybe_unused]] const std::int64_t bytes_at_load = cache_bytes();

}  // namespace

CopyPlan plan_walk(Walk walk, std::int64_t itemsize_bytes, std::int64_t swap_unit_bytes,
                   Order order, const CopyLimits& limits) {
  const std::int64_t total_bytes = elements_of(walk) * itemsize_bytes;
  CopyPlan plan{.swap_unit_bytes = std::max<std::int64_t>(1, swap_unit_bytes),
                .target = walk.target,
                .source = walk.source};
  const bool in_order = order == Order::kAsIndexed;
  // Swapped bytes are written twice, the second time in the caches, so they are not streamed.
  plan.streams = !in_order && plan.swap_unit_bytes == 1;
  if (!in_order) itemsize_bytes = fuse_elements(walk, itemsize_bytes);
  const int columns = in_order || walk.axes.empty() ? -1 : columns_of(walk.axes);
  plan.parallel = !in_order && total_bytes / (columns < 0 ? 2 : 1) >= limits.parallel_bytes;
  if (columns < 0) {
    plan_rows(plan, walk, itemsize_bytes, total_bytes, limits);
  } else {
    plan_planes(plan, walk, itemsize_bytes, columns, total_bytes, limits);
  }
  count_tasks(plan, total_bytes, limits);
  return plan;
}

void run(const CopyPlan& plan, Simd simd, std::int64_t begin, std::int64_t end) {
  if (plan.moves_planes) {
    run_planes(plan, simd, begin, end);
  } else {
    run_rows(plan, simd, begin, end);
  }
  if (plan.streams) end_stream();
}

void copy_view(std::byte* target_block, const StridedView& target, const std::byte* source_block,
               const StridedView& source, std::int64_t swap_unit_bytes, const CopyLimits& limits) {
  Walk walk = make_walk(target_block, target, source_block, source);
  const bool any_order = arrange(walk, target.itemsize_bytes);
  if (any_order && swap_unit_bytes <= 1) {
    // A plan costs more than it saves for a dense run that one thread copies through the caches.
    const std::optional<std::int64_t> bytes = dense_run_bytes(walk, target.itemsize_bytes);
    if (bytes && *bytes / 2 < limits.parallel_bytes && *bytes < limits.stream_rows_bytes) {
      std::memcpy(walk.target, walk.source, static_cast<std::size_t>(*bytes));
      return;
    }
  }
  // If elements of the target share bytes, the order of writes matters.
  const CopyPlan plan = plan_walk(walk, target.itemsize_bytes, swap_unit_bytes,
                                  any_order ? Order::kAny : Order::kAsIndexed, limits);
  const Simd path = simd();
  if (!plan.parallel) return run(plan, path, 0, plan.tasks);
  parallel_for(plan.tasks, plan.tasks_of_a_piece,
               [&](std::int64_t begin, std::int64_t end) { run(plan, path, begin, end); });
}

}  // namespace gridbuf::loops
