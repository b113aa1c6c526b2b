// gridbuf.layout.index_map: which element of an array does each element of its view show?
//
// Purpose. Indexing, slicing with any step, transposing, broadcasting, new axes and reversing all
// answer that question in one form: source index = start + step * view index, dimension by
// dimension. An `IndexMap` is that answer. It is made from a shape alone, before there is memory.
//
// Key choice. Operations make maps, and maps are applied: gridbuf.layout.view applies them to
// strides, gridbuf.layout to halo, aligned index and names. So an operation is written, checked and
// tested once, and what a view means cannot drift away from where it lies. Composition is for free:
// a map is refined in place, operation after operation, and then applied once.
//
// Conventions are NumPy's: negative indices and axes count from the end, slices are clipped. Of the
// step of a slice of one point only the direction is kept, and a slice of no points starts at 0; so
// no map ever points outside its source, and applying it cannot overflow.
//
// Errors. An index or axis out of bounds is OutOfRange (IndexError in Python); every other fault is
// InvalidArgument (ValueError).

module;

#include <cstdint>
#include <optional>
#include <span>
#include <variant>

#include "absl/status/statusor.h"

export module gridbuf.layout.index_map;

import gridbuf.layout.checked;
export import gridbuf.layout.extents;

namespace gridbuf::slices {

// One end of a slice as Python resolves it: counted from the end if negative, then clipped.
constexpr std::int64_t clip(std::int64_t position, std::int64_t extent, std::int64_t lowest,
                            std::int64_t highest) noexcept {
  if (position < 0) position += extent;  // Cannot overflow: the signs differ.
  if (position < lowest) return lowest;
  return position > highest ? highest : position;
}

}  // namespace gridbuf::slices

export namespace gridbuf {

/// start:stop:step as in Python: clipped to the extent, negative numbers count from the end, what
/// is not given depends on the sign of the step. `step` 0 is an error.
struct Slice {
  std::optional<std::int64_t> start = std::nullopt;
  std::optional<std::int64_t> stop = std::nullopt;
  std::int64_t step = 1;
};

/// The points that a slice keeps: point k of the view is point start + step * k of the source.
/// A single point has step 1 or -1, for its direction; no points have start 0 and step 1.
struct SlicePoints {
  std::int64_t start = 0;
  std::int64_t step = 1;
  std::int64_t extent = 0;

  friend constexpr bool operator==(const SlicePoints&, const SlicePoints&) noexcept = default;
};

/// The points that `slice` keeps of `extent`. Requires slice.step != 0 and extent >= 0.
constexpr SlicePoints slice_points(const Slice& slice, std::int64_t extent) noexcept {
  const bool forwards = slice.step > 0;
  const std::int64_t lowest = forwards ? 0 : -1;
  const std::int64_t highest = forwards ? extent : extent - 1;
  const std::int64_t start = slice.start ? slices::clip(*slice.start, extent, lowest, highest)
                                         : (forwards ? lowest : highest);
  const std::int64_t stop = slice.stop ? slices::clip(*slice.stop, extent, lowest, highest)
                                       : (forwards ? highest : lowest);
  const std::int64_t distance = forwards ? stop - start : start - stop;
  if (distance <= 0) return {};
  // Clipped like Python's, so that it can be negated; no extent is long enough to tell.
  const std::int64_t step = slice.step < -checked::kMaxBytes ? -checked::kMaxBytes : slice.step;
  const std::int64_t points = checked::quotient(distance - 1, forwards ? step : -step) + 1;
  if (points == 1) return {start, forwards ? 1 : -1, 1};
  return {start, step, points};
}

/// `None` and `...` in a subscript.
struct NewAxis {};
struct Ellipsis {};

/// One item between the brackets of a[...].
using SubscriptItem = std::variant<std::int64_t, Slice, NewAxis, Ellipsis>;

/// Where one dimension of a view comes from.
struct ViewAxis {
  static constexpr int kNoSource = -1;

  int source = kNoSource;   // The source's dimension, or kNoSource for a new one.
  std::int64_t step = 0;    // Source points per view point; 0 if it is new or broadcast.
  std::int64_t extent = 1;  // View points.

  constexpr bool has_source() const noexcept { return source != kNoSource; }
  friend constexpr bool operator==(const ViewAxis&, const ViewAxis&) noexcept = default;
};

/// Which source element each element of a view shows. Begins as the identity and is refined by the
/// member functions, whose arguments are already checked; the functions `..._map` below check.
class IndexMap {
 public:
  /// Every element shows itself.
  explicit constexpr IndexMap(const Extents& source_shape) noexcept
      : source_shape_(source_shape), start_(source_shape.size(), 0) {
    for (int axis = 0; axis < source_shape.size(); ++axis) {
      axes_.push_back(ViewAxis{axis, 1, source_shape[axis]});
    }
  }

  constexpr int ndim() const noexcept { return axes_.size(); }
  constexpr const ViewAxis& axis(int position) const noexcept { return axes_[position]; }
  constexpr const SmallVec<ViewAxis>& axes() const noexcept { return axes_; }
  constexpr const Extents& source_shape() const noexcept { return source_shape_; }
  /// The source index that the view's element (0, ..., 0) shows.
  constexpr const Extents& start() const noexcept { return start_; }
  /// The view's shape.
  constexpr Extents shape() const noexcept {
    Extents shape;
    for (const ViewAxis& axis : axes_) shape.push_back(axis.extent);
    return shape;
  }

  /// Fixes `axis` at `index` and drops it. Requires 0 <= index < extent.
  constexpr void fix(int axis, std::int64_t index) noexcept {
    const ViewAxis fixed = axes_[axis];
    if (fixed.has_source()) start_[fixed.source] += fixed.step * index;
    axes_.erase(axis);
  }

  /// Keeps `points` of `axis`. Requires that `slice_points` made them for its extent.
  constexpr void keep(int axis, const SlicePoints& points) noexcept {
    ViewAxis& kept = axes_[axis];
    if (kept.has_source()) {
      start_[kept.source] += kept.step * points.start;
      kept.step *= points.step;
    }
    kept.extent = points.extent;
  }

  /// Dimension i becomes what dimension axes[i] is now. Requires a permutation.
  constexpr void permute(const Axes& axes) noexcept {
    const SmallVec<ViewAxis> before = axes_;
    for (int i = 0; i < axes.size(); ++i) axes_[i] = before[axes[i]];
  }

  /// Puts a new dimension of extent 1 before `position`. Requires ndim() < kMaxNdim.
  constexpr void insert(int position) noexcept { axes_.insert(position, ViewAxis{}); }

  /// Repeats `axis`, whose extent is 1, `extent` times.
  constexpr void stretch(int axis, std::int64_t extent) noexcept {
    axes_[axis].step = 0;
    axes_[axis].extent = extent;
  }

  friend constexpr bool operator==(const IndexMap&, const IndexMap&) noexcept = default;

 private:
  Extents source_shape_;
  Extents start_;            // One entry per source dimension.
  SmallVec<ViewAxis> axes_;  // One entry per view dimension.
};

/// a[items...]: integers drop their dimension, slices keep it, one ellipsis stands for all that are
/// not mentioned, new axes have extent 1. OutOfRange for an index out of bounds, too many items, a
/// second ellipsis or more than kMaxNdim dimensions; InvalidArgument for step 0.
absl::StatusOr<IndexMap> subscript_map(const Extents& shape, std::span<const SubscriptItem> items);

/// Dimension `axis` fixed at `index`; both count from the end if negative.
absl::StatusOr<IndexMap> index_map(const Extents& shape, int axis, std::int64_t index);

/// Dimension `axis` sliced.
absl::StatusOr<IndexMap> slice_map(const Extents& shape, int axis, const Slice& slice);

/// Dimension `axis` backwards.
absl::StatusOr<IndexMap> reverse_map(const Extents& shape, int axis);

/// Dimensions permuted: dimension i of the view is dimension axes[i]. Empty `axes` reverse them.
absl::StatusOr<IndexMap> transpose_map(const Extents& shape, const Axes& axes);

/// A new dimension of extent 1 before `position`, 0 .. ndim; -1 puts it last, as in NumPy.
absl::StatusOr<IndexMap> new_axis_map(const Extents& shape, int position);

/// Stretched to `target` by NumPy's rule: aligned at the last dimension, extents equal or 1.
/// InvalidArgument if that is impossible, or if `target` has more bytes than checked::kMaxBytes.
absl::StatusOr<IndexMap> broadcast_map(const Extents& shape, const Extents& target,
                                       std::int64_t itemsize_bytes);

}  // namespace gridbuf
