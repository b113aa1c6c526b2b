module;

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <utility>

module gridbuf.transfer.loops;

import gridbuf.layout;
import gridbuf.layout.view;

namespace gridbuf::loops {

Walk make_walk(std::byte* target_block, const StridedView& target, const std::byte* source_block,
               const StridedView& source) {
  Walk walk{target_block + target.offset_bytes, source_block + source.offset_bytes, {}};
  for (int axis = 0; axis < target.ndim(); ++axis) {
    if (target.shape[axis] == 1) continue;
    walk.axes.push_back(
        {target.shape[axis], target.strides_bytes[axis], source.strides_bytes[axis]});
  }
  return walk;
}

Odometer::Odometer(const SmallVec<Axis>& axes, std::byte* target, const std::byte* source,
                   std::int64_t number)
    : axes_(axes), target_(target), source_(source), index_(axes.size(), 0) {
  for (int i = axes.size() - 1; i >= 0 && number > 0; --i) {
    index_[i] = number % axes[i].extent;
    number /= axes[i].extent;
    move(axes[i], index_[i]);
  }
}

bool Odometer::next() {
  for (int i = axes_.size() - 1; i >= 0; --i) {
    if (++index_[i] < axes_[i].extent) {
      move(axes_[i], 1);
      return true;
    }
    index_[i] = 0;
    move(axes_[i], 1 - axes_[i].extent);
  }
  return false;
}

void Odometer::move(const Axis& axis, std::int64_t steps) {
  target_ += steps * axis.target_stride_bytes;
  source_ += steps * axis.source_stride_bytes;
}

namespace {

template <std::int64_t Axis::* kStride>
void order_by(Walk& walk) {
  for (Axis& axis : walk.axes) {
    if (axis.*kStride >= 0) continue;
    walk.target += (axis.extent - 1) * axis.target_stride_bytes;
    walk.source += (axis.extent - 1) * axis.source_stride_bytes;
    axis.target_stride_bytes = -axis.target_stride_bytes;
    axis.source_stride_bytes = -axis.source_stride_bytes;
  }
  std::sort(walk.axes.begin(), walk.axes.end(),
            [](const Axis& a, const Axis& b) { return a.*kStride > b.*kStride; });
}

}  // namespace

void order_by_target(Walk& walk) { order_by<&Axis::target_stride_bytes>(walk); }
void order_by_source(Walk& walk) { order_by<&Axis::source_stride_bytes>(walk); }

void merge_axes(Walk& walk) {
  int merged = 0;
  for (int i = 1; i < walk.axes.size(); ++i) {
    const Axis axis = walk.axes[i];
    Axis& outer = walk.axes[merged];
    if (outer.target_stride_bytes == axis.target_stride_bytes * axis.extent &&
        outer.source_stride_bytes == axis.source_stride_bytes * axis.extent) {
      outer = {outer.extent * axis.extent, axis.target_stride_bytes, axis.source_stride_bytes};
    } else {
      walk.axes[++merged] = axis;
    }
  }
  while (walk.axes.size() > merged + 1) walk.axes.erase(walk.axes.size() - 1);
}

bool arrange(Walk& walk, std::int64_t itemsize_bytes) {
  const Walk as_indexed = walk;
  order_by_target(walk);
  std::int64_t reach_bytes = itemsize_bytes;
  for (int i = walk.axes.size() - 1; i >= 0; --i) {
    const Axis& axis = walk.axes[i];
    if (axis.target_stride_bytes < reach_bytes) {
      walk = as_indexed;
      return false;
    }
    reach_bytes += (axis.extent - 1) * axis.target_stride_bytes;
  }
  merge_axes(walk);
  return true;
}

std::optional<std::int64_t> dense_run_bytes(const Walk& walk, std::int64_t itemsize_bytes) {
  if (walk.axes.empty()) return itemsize_bytes;
  const Axis& axis = walk.axes[0];
  if (walk.axes.size() > 1 || axis.target_stride_bytes != itemsize_bytes ||
      axis.source_stride_bytes != itemsize_bytes) {
    return std::nullopt;
  }
  return axis.extent * itemsize_bytes;
}

bool may_overlap_itself(const StridedView& view) {
  SmallVec<Axis> axes;
  for (int axis = 0; axis < view.ndim(); ++axis) {
    if (view.shape[axis] != 1) axes.push_back({view.shape[axis], view.strides_bytes[axis], 0});
  }
  return may_overlap_itself(std::move(axes), view.itemsize_bytes);
}

bool may_overlap_itself(SmallVec<Axis> axes, std::int64_t itemsize_bytes) {
  const auto stride = [](const Axis& axis) { return magnitude(axis.target_stride_bytes); };
  std::sort(axes.begin(), axes.end(),
            [&](const Axis& a, const Axis& b) { return stride(a) < stride(b); });
  std::int64_t reach_bytes = itemsize_bytes;
  for (const Axis& axis : axes) {
    if (stride(axis) < reach_bytes) return true;
    reach_bytes += (axis.extent - 1) * stride(axis);
  }
  return false;
}

AddressRange range_of(const std::byte* block, const StridedView& view) {
  return range_of(block, *byte_hull(view));
}

AddressRange range_of(const std::byte* block, const checked::ByteHull& hull) {
  const auto address = reinterpret_cast<std::uintptr_t>(block);
  return {address + static_cast<std::uintptr_t>(hull.lowest_bytes),
          address + static_cast<std::uintptr_t>(hull.highest_bytes)};
}

bool share_bytes(const AddressRange& a, const AddressRange& b) {
  return a.begin < b.end && b.begin < a.end;
}

bool same_elements(const std::byte* target_block, const StridedView& target,
                   const std::byte* source_block, const StridedView& source) {
  if (target_block + target.offset_bytes != source_block + source.offset_bytes) return false;
  for (int axis = 0; axis < target.ndim(); ++axis) {
    if (target.shape[axis] > 1 && target.strides_bytes[axis] != source.strides_bytes[axis]) {
      return false;
    }
  }
  return true;
}

std::optional<StridedView> packed(const StridedView& view) {
  StridedView result{.shape = view.shape,
                     .strides_bytes = Extents(view.ndim(), 0),
                     .itemsize_bytes = view.itemsize_bytes};
  std::optional<std::int64_t> stride = view.itemsize_bytes;
  for (int axis = view.ndim() - 1; axis >= 0; --axis) {
    result.strides_bytes[axis] = *stride;
    stride = checked::mul(*stride, view.shape[axis]);
    if (!stride) return std::nullopt;
  }
  return result;
}

}  // namespace gridbuf::loops
