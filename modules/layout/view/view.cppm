// gridbuf.layout.view: strided views, and the operations that make one view from another.
//
// Purpose. A `StridedView` is how an array lies in a block of bytes: shape, byte strides, the
// offset of element (0, ..., 0) and the item size. The operations are pure functions: nothing is
// touched, and equal arguments give equal results. Each is an index map (gridbuf.layout.index_map)
// applied.
//
// Key choice. The operations are templates over anything that has memory and to which maps apply,
// so the same `slice` works on a bare view and on one with halo, aligned index and names
// (`ViewedPlan`), and users can give their own types the whole set with two small functions.
//
// Convention. Strides of extents of 1 and of arrays without elements carry no meaning. So no test
// looks at them, and no operation computes with them: they are passed on unchanged, for multiplying
// them could overflow for nothing. Operations leave the offset of an array without elements alone.

module;

#include <concepts>
#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "absl/status/statusor.h"

export module gridbuf.layout.view;

export import gridbuf.layout.checked;
export import gridbuf.layout.extents;
export import gridbuf.layout.index_map;

export namespace gridbuf {

/// An array in a block of bytes. A value without invariants; the functions below ask for a *sound*
/// one: as many strides as extents, and a `byte_hull`. Check what comes from outside with that.
struct StridedView {
  Extents shape = {};
  Extents strides_bytes = {};
  std::int64_t offset_bytes = 0;    // Of element (0, ..., 0), from the start of the block.
  std::int64_t itemsize_bytes = 1;  // >= 0

  constexpr int ndim() const noexcept { return shape.size(); }
  friend constexpr bool operator==(const StridedView&, const StridedView&) noexcept = default;
};

/// Whether any extent is 0.
constexpr bool is_empty(const Extents& shape) noexcept {
  for (const std::int64_t extent : shape) {
    if (extent == 0) return true;
  }
  return false;
}

/// The bytes that the view touches, as offsets [lowest_bytes, highest_bytes) from the start of the
/// block; nothing if they, or their number, do not fit in 64 bits, or if the view is malformed.
constexpr std::optional<checked::ByteHull> byte_hull(const StridedView& view) noexcept {
  return checked::byte_hull(view.shape.span(), view.strides_bytes.span(), view.itemsize_bytes,
                            view.offset_bytes);
}

/// The offset of the element at `index`. Requires a sound view and 0 <= index[i] < shape[i].
constexpr std::int64_t byte_offset(const StridedView& view, const Extents& index) noexcept {
  std::int64_t offset = view.offset_bytes;
  for (int axis = 0; axis < view.ndim(); ++axis) offset += index[axis] * view.strides_bytes[axis];
  return offset;
}

}  // namespace gridbuf

namespace gridbuf::contiguity {

// Whether the strides are those of an array without gaps whose dimensions grow from the last one
// to the first, or the other way round.
constexpr bool is_dense(const StridedView& view, bool last_fastest) noexcept {
  if (is_empty(view.shape)) return true;
  std::int64_t expected_bytes = view.itemsize_bytes;
  for (int k = 0; k < view.ndim(); ++k) {
    const int axis = last_fastest ? view.ndim() - 1 - k : k;
    if (view.shape[axis] == 1) continue;
    if (view.strides_bytes[axis] != expected_bytes) return false;
    const std::optional<std::int64_t> next = checked::mul(expected_bytes, view.shape[axis]);
    if (!next) return false;
    expected_bytes = *next;
  }
  return true;
}

}  // namespace gridbuf::contiguity

export namespace gridbuf {

/// Whether the elements lie without gaps, the last dimension fastest. Extents of 1 are ignored, and
/// an array without elements is contiguous.
constexpr bool is_c_contiguous(const StridedView& view) noexcept {
  return contiguity::is_dense(view, /*last_fastest=*/true);
}

/// The same with the first dimension fastest.
constexpr bool is_f_contiguous(const StridedView& view) noexcept {
  return contiguity::is_dense(view, /*last_fastest=*/false);
}

/// The view of `source` that `map` describes. Requires a sound view of shape map.source_shape().
constexpr StridedView apply(const IndexMap& map, const StridedView& source) noexcept {
  const bool has_elements = !is_empty(source.shape);
  StridedView view;
  view.offset_bytes = has_elements ? byte_offset(source, map.start()) : source.offset_bytes;
  view.itemsize_bytes = source.itemsize_bytes;
  for (const ViewAxis& axis : map.axes()) {
    std::int64_t stride_bytes = axis.has_source() ? source.strides_bytes[axis.source] : 0;
    if (has_elements && axis.extent > 1) stride_bytes *= axis.step;
    view.shape.push_back(axis.extent);
    view.strides_bytes.push_back(stride_bytes);
  }
  return view;
}

/// The memory of a view is the view; other types say what theirs is by a function of this name.
constexpr const StridedView& memory_of(const StridedView& view) noexcept { return view; }

/// What view operations work on: it has memory, and index maps can be applied to it.
template <class V>
concept Viewable = requires(const V& value, const IndexMap& map) {
  { memory_of(value) } -> std::convertible_to<const StridedView&>;
  { apply(map, value) } -> std::same_as<V>;
};

/// `value` seen through `map`, or the map's error.
template <Viewable V>
absl::StatusOr<V> apply_or_error(const absl::StatusOr<IndexMap>& map, const V& value) {
  if (!map.ok()) return map.status();
  return apply(*map, value);
}

// The operations, view to view. Arguments and errors are those of the maps `subscript_map`, ...

/// a[items...]
template <Viewable V>
absl::StatusOr<V> subscript(const V& value, std::span<const SubscriptItem> items) {
  return apply_or_error(subscript_map(memory_of(value).shape, items), value);
}
/// Dimension `axis` fixed at `position` and dropped.
template <Viewable V>
absl::StatusOr<V> index(const V& value, int axis, std::int64_t position) {
  return apply_or_error(index_map(memory_of(value).shape, axis, position), value);
}
/// The points of dimension `axis` that `points` selects.
template <Viewable V>
absl::StatusOr<V> slice(const V& value, int axis, const Slice& points) {
  return apply_or_error(slice_map(memory_of(value).shape, axis, points), value);
}
/// Dimension `axis` backwards.
template <Viewable V>
absl::StatusOr<V> reverse(const V& value, int axis) {
  return apply_or_error(reverse_map(memory_of(value).shape, axis), value);
}
/// Dimension i is dimension axes[i] of `value`; without `axes`, all in reverse order.
template <Viewable V>
absl::StatusOr<V> transpose(const V& value, const Axes& axes = {}) {
  return apply_or_error(transpose_map(memory_of(value).shape, axes), value);
}
/// A dimension of extent 1 before `position`.
template <Viewable V>
absl::StatusOr<V> new_axis(const V& value, int position) {
  return apply_or_error(new_axis_map(memory_of(value).shape, position), value);
}
/// Repeated, with stride 0, to `target`.
template <Viewable V>
absl::StatusOr<V> broadcast_to(const V& value, const Extents& target) {
  const StridedView& memory = memory_of(value);
  return apply_or_error(broadcast_map(memory.shape, target, memory.itemsize_bytes), value);
}

/// "shape (3, 4), strides (32, 8) bytes, offset 16 bytes, itemsize 8 bytes".
std::string to_string(const StridedView& view);

}  // namespace gridbuf
