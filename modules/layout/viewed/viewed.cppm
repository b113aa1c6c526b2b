// gridbuf.layout.viewed: a plan as one sees it through views, with its meaning.
//
// Purpose. An array on a grid is more than strides: its dimensions have names, a halo, and an index
// at which memory is aligned. A `ViewedPlan` holds all of it. It begins as a view of a whole plan,
// and every view operation of gridbuf.layout.view (`index`, `slice`, `transpose`, ...) makes a new
// one in which names, halo and aligned index have followed the dimensions.
//
// How they follow. A dimension fixed by an integer takes its name, halo and aligned index with it.
// A slice keeps the name; its halo is those of its points that were halo before; its aligned index
// is the aligned point if the slice kept it, else the last kept point before it (in the view's own
// order; the first point if there is none). New and broadcast dimensions have no halo and aligned
// index 0; a new one is named by the lowest data number that is free.
//
// Key choice: no false promise. The element at a view's aligned index may not be the aligned one
// any more, so a view's alignment is the largest one that still holds there: the gcd of the plan's
// alignment and the distance in bytes between the two elements. Every stride but the contiguous
// dimension's stays a multiple of it, so the property of whole plans (all elements that share the
// contiguous index are aligned) holds for every view as well.

module;

#include <cstdint>
#include <numeric>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

export module gridbuf.layout.viewed;

export import gridbuf.layout;

export namespace gridbuf {

/// A view of a plan with its meaning. Make one with `view_plan` and the view operations: then there
/// is one name, halo and aligned index per dimension, and they are valid ones.
struct ViewedPlan {
  StridedView memory = {};  // Offsets count from element (0, ..., 0) of the plan.
  Dims dims = {};
  Halo halo = {};
  Extents aligned_index = {};
  std::int64_t alignment_bytes = 1;  // Holds at aligned_index.

  constexpr int ndim() const noexcept { return memory.ndim(); }
  friend constexpr bool operator==(const ViewedPlan&, const ViewedPlan&) noexcept = default;
};

/// The whole of `plan`. Empty `dims` are the default names, an empty `halo` is none.
/// InvalidArgument if they do not fit the plan (gridbuf.layout.dims, gridbuf.layout.halo).
absl::StatusOr<ViewedPlan> view_plan(const LayoutPlan& plan, const Dims& dims = {},
                                     const Halo& halo = {});

/// `halo` seen through `map`.
constexpr Halo apply(const IndexMap& map, const Halo& halo) noexcept {
  Halo result;
  for (const ViewAxis& axis : map.axes()) {
    const bool follows = axis.has_source() && axis.step != 0;
    result.push_back(follows ? halo_of_slice(halo[axis.source], map.source_shape()[axis.source],
                                             map.start()[axis.source], axis.step, axis.extent)
                             : HaloWidth{});
  }
  return result;
}

/// `names` seen through `map`.
constexpr Dims apply(const IndexMap& map, const Dims& names) noexcept {
  Dims kept;
  for (const ViewAxis& axis : map.axes()) {
    if (axis.has_source()) kept.push_back(names[axis.source]);
  }
  Dims used = kept;
  Dims result;
  int next_kept = 0;
  for (const ViewAxis& axis : map.axes()) {
    if (axis.has_source()) {
      result.push_back(kept[next_kept++]);
    } else {
      result.push_back(unused_data_dim(used));
      used.push_back(result[result.size() - 1]);
    }
  }
  return result;
}

/// `index`, an aligned index of the source, seen through `map`.
constexpr Extents apply_to_index(const IndexMap& map, const Extents& index) noexcept {
  Extents result;
  for (const ViewAxis& axis : map.axes()) {
    std::int64_t position = 0;
    if (axis.has_source() && axis.step != 0 && axis.extent > 1) {
      const std::int64_t ahead = index[axis.source] - map.start()[axis.source];
      // Towards zero is down here: a point before the view is clipped to 0 anyway.
      if ((ahead < 0) == (axis.step < 0)) position = axis.step == 1 ? ahead : ahead / axis.step;
      if (position >= axis.extent) position = axis.extent - 1;
    }
    result.push_back(position);
  }
  return result;
}

/// `layout`, a layout map of the source, seen through `map`: dimensions that come from the source
/// keep their order; new ones of extent 1 go outermost, where a copy of the view does not pad them;
/// broadcast ones, whose stride is 0, go innermost.
constexpr LayoutMap apply_to_layout(const IndexMap& map, const LayoutMap& layout) noexcept {
  // A key per dimension that orders as the strides do.
  const auto key = [&layout](const ViewAxis& axis) {
    if (axis.step == 0 && axis.extent != 1) return kMaxNdim;
    return axis.has_source() ? layout[axis.source] : -1;
  };
  LayoutMap result;
  for (int i = 0; i < map.ndim(); ++i) {
    int rank = 0;
    for (int j = 0; j < map.ndim(); ++j) {
      const int ours = key(map.axes()[i]);
      const int other = key(map.axes()[j]);
      rank += other < ours || (other == ours && j < i) ? 1 : 0;
    }
    result.push_back(rank);
  }
  return result;
}

/// The memory of a viewed plan; with the `apply` below, all view operations work on it.
constexpr const StridedView& memory_of(const ViewedPlan& plan) noexcept { return plan.memory; }

/// `source` seen through `map`. Requires that its memory has the shape map.source_shape().
constexpr ViewedPlan apply(const IndexMap& map, const ViewedPlan& source) noexcept {
  ViewedPlan view;
  view.memory = apply(map, source.memory);
  view.dims = apply(map, source.dims);
  view.halo = apply(map, source.halo);
  view.aligned_index = apply_to_index(map, source.aligned_index);
  view.alignment_bytes = source.alignment_bytes;
  if (!is_empty(view.memory.shape)) {
    const std::int64_t moved_bytes = byte_offset(view.memory, view.aligned_index) -
                                     byte_offset(source.memory, source.aligned_index);
    view.alignment_bytes = std::gcd(source.alignment_bytes, moved_bytes);
  }
  return view;
}

/// The same view with another halo. Never re-aligns. InvalidArgument if the halo does not fit.
absl::StatusOr<ViewedPlan> with_halo(const ViewedPlan& plan, const Halo& halo);

/// The domain: the halo cut off, so that index (0, ..., 0) is the first domain point.
ViewedPlan domain_view(const ViewedPlan& plan);

/// "ViewedPlan(shape (3, 4), strides (32, 8) bytes, ..., dims ('I', 'J'), halo ((1, 1), (0, 0)),
/// ...)".
std::string to_string(const ViewedPlan& plan);

}  // namespace gridbuf
