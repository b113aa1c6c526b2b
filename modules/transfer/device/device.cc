module;

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

module gridbuf.transfer.device;

import gridbuf.alloc;
import gridbuf.error;
import gridbuf.layout.extents;
import gridbuf.transfer.walk;

namespace gridbuf {
namespace {

using walk::Axis;
using walk::Walk;

absl::Status check_view(std::string_view role, const std::byte* block, const StridedView& view) {
  const bool needs_memory = !is_empty(view.shape) && view.itemsize_bytes > 0;
  if (byte_hull(view) && (block != nullptr || !needs_memory)) return absl::OkStatus();
  return make_error(ErrorClass::kValue,
                    {role, to_string(view), "a view of memory within 2^63 - 1 bytes",
                     "check block, shape and strides"});
}

absl::Status check_pair(const StridedView& target, const StridedView& source) {
  if (target.shape == source.shape && target.itemsize_bytes == source.itemsize_bytes) {
    return absl::OkStatus();
  }
  return make_error(ErrorClass::kValue, {"the source", to_string(source),
                                         "of the target's shape and itemsize, " + to_string(target),
                                         "broadcast or convert the source first"});
}

// A walk as calls of the driver: a block of rows, repeated for every index of the outer axes.
struct Calls {
  RowCopy rows;
  SmallVec<Axis> outer;
};

// Whether the axis can be the rows of a 2-D copy: steps of at least a row, upwards, on both sides.
bool can_be_rows(const Axis& axis, std::int64_t row_bytes) {
  return axis.target_stride_bytes >= row_bytes && axis.source_stride_bytes >= row_bytes;
}

// The innermost axis becomes the row if it is dense on both sides, the longest possible one of the
// others its repetition. With `in_order` every element is a call of its own, in row-major order.
Calls calls_of(const Walk& walk, std::int64_t itemsize_bytes, bool in_order) {
  Calls calls{{walk.target, 0, walk.source, 0, itemsize_bytes, 1}, walk.axes};
  if (in_order || walk.axes.empty()) return calls;
  int outer_count = walk.axes.size();
  const Axis& innermost = walk.axes[outer_count - 1];
  if (innermost.target_stride_bytes == itemsize_bytes &&
      innermost.source_stride_bytes == itemsize_bytes) {
    calls.rows.row_bytes = innermost.extent * itemsize_bytes;
    --outer_count;
  }
  int rows = -1;
  for (int axis = 0; axis < outer_count; ++axis) {
    if (!can_be_rows(walk.axes[axis], calls.rows.row_bytes)) continue;
    if (rows < 0 || walk.axes[axis].extent > walk.axes[rows].extent) rows = axis;
  }
  calls.outer = {};
  for (int axis = 0; axis < outer_count; ++axis) {
    if (axis != rows) calls.outer.push_back(walk.axes[axis]);
  }
  if (rows < 0) return calls;
  calls.rows.row_count = walk.axes[rows].extent;
  calls.rows.target_pitch_bytes = walk.axes[rows].target_stride_bytes;
  calls.rows.source_pitch_bytes = walk.axes[rows].source_stride_bytes;
  return calls;
}

absl::Status enqueue(DeviceDriver& driver, const RowCopy& rows, StreamHandle stream) {
  if (rows.row_count == 1) return driver.copy(rows.target, rows.source, rows.row_bytes, stream);
  return driver.copy_rows(rows, stream);
}

// Every index of the outer axes in row-major order.
absl::Status enqueue_all(DeviceDriver& driver, const Calls& calls, StreamHandle stream) {
  RowCopy rows = calls.rows;
  auto* target = static_cast<std::byte*>(rows.target);
  const auto* source = static_cast<const std::byte*>(rows.source);
  Extents index(calls.outer.size(), 0);
  while (true) {
    rows.target = target;
    rows.source = source;
    if (absl::Status status = enqueue(driver, rows, stream); !status.ok()) return status;
    int axis = calls.outer.size() - 1;
    for (; axis >= 0; --axis) {
      const Axis& outer = calls.outer[axis];
      target += outer.target_stride_bytes;
      source += outer.source_stride_bytes;
      if (++index[axis] < outer.extent) break;
      target -= outer.extent * outer.target_stride_bytes;
      source -= outer.extent * outer.source_stride_bytes;
      index[axis] = 0;
    }
    if (axis < 0) return absl::OkStatus();
  }
}

// Copies between blocks that share no byte.
absl::Status copy_apart(DeviceDriver& driver, std::byte* target_block, const StridedView& target,
                        const std::byte* source_block, const StridedView& source,
                        StreamHandle stream) {
  Walk walk = walk::make_walk(target_block, target, source_block, source);
  // Where elements of the target share bytes, the order of writing shows: it stays row-major.
  const bool in_order = walk::may_overlap_itself(target);
  if (!in_order) {
    walk::order_by_target(walk);
    walk::merge_axes(walk);
  }
  return enqueue_all(driver, calls_of(walk, target.itemsize_bytes, in_order), stream);
}

absl::Status copy_overlapping(DeviceDriver& driver, std::byte* target_block,
                              const StridedView& target, const std::byte* source_block,
                              const StridedView& source, StreamHandle stream) {
  const std::optional<StridedView> between = walk::packed(source);
  const std::optional<checked::ByteHull> hull = between ? byte_hull(*between) : std::nullopt;
  if (!hull) {
    return make_error(ErrorClass::kValue, {"the source", to_string(source),
                                           "of at most 2^63 - 1 bytes", "copy a smaller part"});
  }
  const ScopedStream scope(stream);
  const absl::StatusOr<Block> scratch =
      driver.resource(MemoryKind::kDevice).allocate({.total_bytes = hull->highest_bytes});
  if (!scratch.ok()) return with_context(scratch.status(), "copy between overlapping views");
  if (absl::Status status =
          copy_apart(driver, scratch->data(), *between, source_block, source, stream);
      !status.ok()) {
    return status;
  }
  return copy_apart(driver, target_block, target, scratch->data(), *between, stream);
}

}  // namespace

absl::Status copy_elements_on(DeviceDriver& driver, std::byte* target_block,
                              const StridedView& target, const std::byte* source_block,
                              const StridedView& source, StreamHandle stream) {
  for (const absl::Status& status :
       {check_pair(target, source), check_view("the target", target_block, target),
        check_view("the source", source_block, source), driver.check_stream(stream)}) {
    if (!status.ok()) return status;
  }
  if (is_empty(target.shape) || target.itemsize_bytes == 0) return absl::OkStatus();
  if (!walk::overlap(walk::range_of(target_block, target), walk::range_of(source_block, source))) {
    return copy_apart(driver, target_block, target, source_block, source, stream);
  }
  if (!walk::may_overlap_itself(target) &&
      walk::same_elements(target_block, target, source_block, source)) {
    return absl::OkStatus();
  }
  return copy_overlapping(driver, target_block, target, source_block, source, stream);
}

}  // namespace gridbuf
