// gridbuf.layout.view: views of arrays, and operations that pair dimensions by name.
//
// Index maps. Indexing, slicing with any step, transposing, broadcasting, new axes and reversing
// all answer one question: which element of an array does each element of its view show? The answer
// is source index = start + step * view index, for each dimension. An `IndexMap` holds start and
// step. Only a shape is needed to make a map. `apply` applies a map to a `StridedView`, a `Layout`,
// names, a halo, an aligned index or a layout map. So an operation is written, checked and tested
// once, and the meaning of a view cannot differ from its memory. The operations are templates over
// all types that have memory and to which maps apply. Your types get them with two small functions
// (see `Viewable`).
//
// Conventions are NumPy's: negative indices and axes count from the end, slices are clipped. An
// index or axis out of bounds is OutOfRange (IndexError in Python), every other error
// InvalidArgument (ValueError). Strides of extents of 1 and of arrays without elements carry no
// meaning. Those of a view are those of a dense array.
//
// Layouts through maps. A dimension fixed by an integer takes its name, halo and aligned index with
// it. A slice keeps the name; its halo is those of its points that were halo before. Its aligned
// index is the aligned point if the slice keeps it, else the last kept point before it, else the
// first point. The element at that index may have a smaller alignment. So the alignment of a view
// is the gcd of the old alignment and the distance in bytes between the two elements.
//
// Names. NumPy pairs dimensions by position, counted from the last one. `join` pairs them by name:
// (I, J) with extents (2, 3) and (K) with extent 4 join to (I, J, K) with extents (2, 3, 4).
// Extents of one name must be equal, unless both know the index of their first point: then they
// join to the points that both have. An extent of 1 stretches only if the dimension is stretchable:
// a new axis, or one that a reduction has kept. Any other field that does not depend on I does not
// have the dimension I. The result has the largest halo and aligned index of the
// operands, the least common multiple of their alignments, and the layout of the first operand.
// Where that halo does not fit or the multiple is out of bounds, the result has the value of the
// first operand.

module;

#include <array>
#include <concepts>
#include <cstdint>
#include <numeric>
#include <optional>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

export module gridbuf.layout.view;

export import gridbuf.layout;

// ---- Index maps. ----

namespace gridbuf::slices {

/// Resolves one end of a slice as Python does: counts from the end if negative, then clips.
constexpr std::int64_t clip(std::int64_t position, std::int64_t extent, std::int64_t lowest,
                            std::int64_t highest) noexcept {
  if (position < 0) position += extent;  // Cannot overflow: the signs differ.
  if (position < lowest) return lowest;
  return position > highest ? highest : position;
}

}  // namespace gridbuf::slices

export namespace gridbuf {

/// start:stop:step as in Python. Ends are clipped to the extent, negative numbers count from the
/// end, and the defaults depend on the sign of the step. `step` 0 is an error.
struct Slice {
  std::optional<std::int64_t> start = std::nullopt;
  std::optional<std::int64_t> stop = std::nullopt;
  std::int64_t step = 1;
};

/// The points that a slice keeps: point k of the view is point start + step * k of the source.
/// For a single point, step is 1 or -1, its direction. For no points, start is 0 and step 1.
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
  // Clipped as in Python, so that it can be negated. The result is the same for every extent.
  const std::int64_t step = slice.step < -checked::kMaxBytes ? -checked::kMaxBytes : slice.step;
  const std::int64_t points = checked::quotient(distance - 1, forwards ? step : -step) + 1;
  if (points == 1) return {start, forwards ? 1 : -1, 1};
  return {start, step, points};
}

/// `None` and `...` in a subscript.
struct NewAxis {};
/// `...` in a subscript.
struct Ellipsis {};

/// One item between the brackets of a[...].
using SubscriptItem = std::variant<std::int64_t, Slice, NewAxis, Ellipsis>;

/// Where one dimension of a view comes from.
struct ViewAxis {
  static constexpr int kNoSource = -1;

  int source = kNoSource;   // The source's dimension, or kNoSource for a new one.
  std::int64_t step = 0;    // Source points per view point; 0 if new or broadcast.
  std::int64_t extent = 1;  // View points.

  constexpr bool has_source() const noexcept { return source != kNoSource; }
  friend constexpr bool operator==(const ViewAxis&, const ViewAxis&) noexcept = default;
};

/// Which source element each element of a view shows. A map begins as the identity; the member
/// functions refine it. They do not check their arguments; the functions `..._map` below do.
class IndexMap {
 public:
  /// Every element shows itself.
  explicit constexpr IndexMap(const Extents& source_shape)
      : source_shape_(source_shape),
        start_(source_shape.size(), 0),
        axes_(source_shape.size(), ViewAxis{}) {
    for (int axis = 0; axis < source_shape.size(); ++axis) {
      axes_[axis] = {axis, 1, source_shape[axis]};
    }
  }

  constexpr int ndim() const noexcept { return axes_.size(); }
  constexpr const ViewAxis& axis(int position) const noexcept { return axes_[position]; }
  constexpr const SmallVec<ViewAxis>& axes() const noexcept { return axes_; }
  constexpr const Extents& source_shape() const noexcept { return source_shape_; }
  /// The source index that the view's element (0, ..., 0) shows.
  constexpr const Extents& start() const noexcept { return start_; }
  /// The view's shape.
  constexpr Extents shape() const {
    Extents shape;
    for (const ViewAxis& axis : axes_) shape.push_back(axis.extent);
    return shape;
  }

  /// Whether every element shows itself.
  constexpr bool is_identity() const noexcept {
    if (ndim() != source_shape_.size()) return false;
    for (int axis = 0; axis < ndim(); ++axis) {
      if (axes_[axis] != ViewAxis{axis, 1, source_shape_[axis]}) return false;
    }
    return true;
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

  /// Dimension i of the result is dimension axes[i]. Requires a permutation.
  constexpr void permute(const Axes& axes) {
    const SmallVec<ViewAxis> before = axes_;
    for (int i = 0; i < axes.size(); ++i) axes_[i] = before[axes[i]];
  }

  /// Puts a new dimension of extent 1 before `position`. Requires ndim() < kMaxNdim.
  constexpr void insert(int position) { axes_.insert(position, ViewAxis{}); }

  /// Repeats `axis`, whose extent is 1, `extent` times.
  constexpr void stretch(int axis, std::int64_t extent) noexcept {
    axes_[axis].step = 0;
    axes_[axis].extent = extent;
  }

  /// The map from this map's source to `view`, a view of its view. Requires view.source_shape() ==
  /// shape().
  constexpr IndexMap through(const IndexMap& view) const {
    IndexMap joined = *this;
    for (int axis = 0; axis < ndim(); ++axis) {
      if (axes_[axis].has_source()) {
        joined.start_[axes_[axis].source] += axes_[axis].step * view.start_[axis];
      }
    }
    joined.axes_ = {};
    for (const ViewAxis& seen : view.axes_) {
      const ViewAxis from = seen.has_source() ? axes_[seen.source] : ViewAxis{};
      // A step along one point or none is not used, and its product might overflow.
      const bool moves = from.has_source() && seen.extent > 1;
      joined.axes_.push_back({from.source, moves ? from.step * seen.step : 0, seen.extent});
    }
    return joined;
  }

  friend constexpr bool operator==(const IndexMap&, const IndexMap&) noexcept = default;

 private:
  Extents source_shape_;
  Extents start_;            // One entry per source dimension.
  SmallVec<ViewAxis> axes_;  // One entry per view dimension.
};

/// a[items...]: integers drop their dimension, slices keep it, one ellipsis means all remaining
/// dimensions, new axes have extent 1. OutOfRange for an index out of bounds, too many items, a
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

// ---- Strided views. ----

namespace gridbuf::contiguity {

/// Whether the strides are those of an array without gaps, in C order (`last_fastest`) or Fortran
/// order.
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

/// Whether the elements are without gaps, the last dimension fastest. Extents of 1 are ignored, and
/// an array without elements is contiguous.
constexpr bool is_c_contiguous(const StridedView& view) noexcept {
  return contiguity::is_dense(view, /*last_fastest=*/true);
}

/// As is_c_contiguous, with the first dimension fastest.
constexpr bool is_f_contiguous(const StridedView& view) noexcept {
  return contiguity::is_dense(view, /*last_fastest=*/false);
}

/// The view of `source` that `map` describes. Requires a sound view of shape map.source_shape().
constexpr StridedView apply(const IndexMap& map, const StridedView& source) {
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
  replace_meaningless_strides(view);
  return view;
}

/// The memory of a view is the view. Other types define a function of this name.
constexpr const StridedView& memory_of(const StridedView& view) noexcept { return view; }

/// A type on which view operations work: it has memory, and index maps can be applied to it.
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

/// The bytes of an element that hold values, as views inside one element. The axes of a part are
/// those of subarrays. Bytes outside all parts are gaps.
using ElementParts = std::vector<StridedView>;

/// The error of for_parts.
absl::Status too_many_axes();

/// Whether the parts are one run of all bytes of the element.
bool is_whole(const ElementParts& parts, std::int64_t itemsize_bytes) noexcept;

/// The view of a part of each element of `view`: its axes that are longer than 1, then the part's.
/// Nothing if these are more than kMaxNdim.
std::optional<StridedView> part_of_each(const StridedView& view, const StridedView& part);

/// Calls `work`, which returns a status, with each part of the elements of both views; with the
/// views if `parts` is null. Error kValue for more than kMaxNdim axes.
template <class Work>
absl::Status for_parts(const ElementParts* parts, const Work& work, const StridedView& target,
                       const StridedView& source) {
  if (parts == nullptr) return work(target, source);
  for (const StridedView& part : *parts) {
    const std::optional<StridedView> to = part_of_each(target, part);
    const std::optional<StridedView> from = part_of_each(source, part);
    if (!to || !from) return too_many_axes();
    if (absl::Status status = work(*to, *from); !status.ok()) return status;
  }
  return absl::OkStatus();
}

// ---- Layouts through maps. ----

/// The lowest-numbered data dimension that `dims` does not use: the name of a new axis.
constexpr Dim unused_data_dim(const Dims& dims) noexcept {
  for (int number = 0;; ++number) {
    bool used = false;
    for (const Dim dim : dims) used = used || dim == Dim::data(number);
    if (!used) return Dim::data(number);
  }
}

/// `halo` seen through `map`.
constexpr Halo apply(const IndexMap& map, const Halo& halo) {
  Halo result;
  for (const ViewAxis& axis : map.axes()) {
    const bool follows = axis.has_source() && axis.step != 0;
    result.push_back(follows ? halo_of_slice(halo[axis.source], map.source_shape()[axis.source],
                                             map.start()[axis.source], axis.step, axis.extent)
                             : HaloWidth{});
  }
  return result;
}

/// `names` seen through `map`. New axes are unnamed. What has another extent than 1 is not
/// stretchable. A start is that of the first point; it is unknown where points are left out.
constexpr Dims apply(const IndexMap& map, const Dims& names) {
  Dims kept;
  for (const ViewAxis& axis : map.axes()) {
    if (!axis.has_source()) continue;
    const Dim dim = names[axis.source];
    if (dim.has_start() && (axis.extent == 1 || axis.step == 1)) {
      kept.push_back(dim.starting_at(dim.start() + map.start()[axis.source]));
    } else {
      kept.push_back(axis.extent == 1 ? dim : dim.plain());
    }
  }
  Dims used = kept;
  Dims result;
  int next_kept = 0;
  for (const ViewAxis& axis : map.axes()) {
    if (axis.has_source()) {
      result.push_back(kept[next_kept++]);
    } else {
      const Dim dim = unused_data_dim(used);
      result.push_back(axis.extent == 1 ? dim.unnamed() : dim);
      used.push_back(result[result.size() - 1]);
    }
  }
  return result;
}

/// `index`, an aligned index of the source, seen through `map`.
constexpr Extents apply_to_index(const IndexMap& map, const Extents& index) {
  Extents result;
  for (const ViewAxis& axis : map.axes()) {
    std::int64_t position = 0;
    if (axis.has_source() && axis.step != 0 && axis.extent > 1) {
      const std::int64_t ahead = index[axis.source] - map.start()[axis.source];
      // Rounding towards zero is rounding down here, because a point before the view is clipped to
      // 0.
      if ((ahead < 0) == (axis.step < 0)) position = axis.step == 1 ? ahead : ahead / axis.step;
      if (position >= axis.extent) position = axis.extent - 1;
    }
    result.push_back(position);
  }
  return result;
}

/// `layout`, a layout map of the source, seen through `map`. Dimensions of the source keep their
/// order. New dimensions of extent 1 go outermost, where a copy of the view does not pad them.
/// Broadcast dimensions, with stride 0, go innermost.
constexpr LayoutMap apply_to_layout(const IndexMap& map, const LayoutMap& layout) {
  // The order of the keys is the order of the strides.
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

/// The memory of a layout; with the `apply` below, all view operations work on it.
constexpr const StridedView& memory_of(const Layout& layout) noexcept { return layout.view(); }

/// The alignment at `view_index` of `view`, which was made from `source`. `source` has
/// `alignment_bytes` at `source_index`.
constexpr std::int64_t seen_alignment_bytes(const StridedView& view, const Extents& view_index,
                                            const StridedView& source, const Extents& source_index,
                                            std::int64_t alignment_bytes) noexcept {
  if (is_empty(view.shape)) return alignment_bytes;
  return std::gcd(alignment_bytes,
                  byte_offset(view, view_index) - byte_offset(source, source_index));
}

/// The parts of `source` seen through `map`. Not `empty()`: a layout without dimensions counts as
/// named, and its new axes get names.
struct SeenParts {
  const IndexMap& map;
  const Layout& source;

  constexpr StridedView view() const { return apply(map, source.view()); }
  constexpr Extents aligned_index() const { return apply_to_index(map, source.aligned_index()); }
  constexpr LayoutMap layout_map() const { return apply_to_layout(map, source.layout_map()); }
  constexpr Dims dims() const {
    return source.dims().size() == source.ndim() ? apply(map, source.dims()) : Dims();
  }
  constexpr Halo halo() const {
    return source.halo().size() == source.ndim() ? apply(map, source.halo()) : Halo();
  }
  constexpr std::int64_t alignment_bytes(const Layout& seen) const {
    return seen_alignment_bytes(seen.view(), seen.aligned_index(), source.view(),
                                source.aligned_index(), source.alignment_bytes());
  }
};

/// `source` seen through `map`. Requires the shape map.source_shape().
constexpr Layout apply(const IndexMap& map, const Layout& source) {
  return Layout(SeenParts{map, source});
}

/// The domain: the view without the halo. Index (0, ..., 0) is the first domain point. Requires
/// that `halo` fits `shape`.
IndexMap domain_map(const Extents& shape, const Halo& halo);

// ---- Dimensions paired by name. ----

/// The dimensions of an array: shape[i] is the extent of dims[i]. Foreign arrays give nothing more.
/// Requires distinct names, one per extent.
struct NamedShape {
  Dims dims = {};
  Extents shape = {};

  friend constexpr bool operator==(const NamedShape&, const NamedShape&) noexcept = default;
};

/// The position of `dim` in `dims`, or -1.
constexpr int position_of(Dim dim, const Dims& dims) noexcept {
  for (int i = 0; i < dims.size(); ++i) {
    if (dims[i] == dim) return i;
  }
  return -1;
}

/// The result of an operation on `fields` and `others`, as a request with an item size of 1.
/// `others` take part only with names and extents. Requires that all lists of a field have one
/// valid entry per dimension. The dimensions of the result have the given order or, without one,
/// that of the first field that has all of them, else that of Dim: I, J, K and then data dimensions
/// by number. A dimension is stretchable in the result if it is so in all operands that have it.
/// Along one whose start several operands know it has the points that all of these have.
/// InvalidArgument, with the dimension and what differs, if two operands disagree about its extent
/// or its kind, for an order of other names, or for more than kMaxNdim names.
absl::StatusOr<LayoutRequest> join(std::span<const LayoutRequest> fields,
                                   std::span<const NamedShape> others = {}, const Dims& order = {});

/// `array` with its dimensions in the order of `target`. Dimensions that it lacks become axes of
/// extent 1. InvalidArgument, with the name, if it has a dimension that `target` lacks.
absl::StatusOr<IndexMap> named_map(const NamedShape& array, const Dims& target);

/// `array` at the points of `target` along the dimensions whose start both know. InvalidArgument,
/// with the name and both ranges, if it lacks some.
absl::StatusOr<IndexMap> common_points_map(const NamedShape& array, const NamedShape& target);

/// `array` repeated to all of `target`, as an assignment to `target` reads it. Unnamed axes are
/// left out, stretchable ones are repeated. Errors as common_points_map; InvalidArgument, with the
/// name, if it has another dimension that `target` lacks, or if an extent differs.
absl::StatusOr<IndexMap> named_broadcast_map(const NamedShape& array, const NamedShape& target);

/// `field` after a reduction of `axes`: without them or, with `keep`, stretchable with extents of 1
/// and halo (0, 0). Requires distinct axes of `field`, in ascending order.
LayoutRequest reduced_layout(const LayoutRequest& field, const Axes& axes, bool keep);

// ---- For this library and its tests. ----

/// The base ranks of the presets, in the order in which `extended_layout` tries them.
inline constexpr std::array<std::array<int, kSpatialAxes>, 6> kBaseRanks{
    {{0, 1, 2}, {2, 1, 0}, {2, 0, 1}, {1, 2, 0}, {0, 2, 1}, {1, 0, 2}}};

/// The layout map for `target` that keeps the order that `layout` gives to `dims`. Additional data
/// dimensions go outermost. Additional spatial dimensions follow the first of kBaseRanks that
/// agrees with the order of `dims`. Requires that `target` has all of `dims`.
LayoutMap extended_layout(const Dims& dims, const LayoutMap& layout, const Dims& target);

/// The least common multiple of two alignments, or nothing if it is above kMaxAlignmentBytes.
std::optional<std::int64_t> common_alignment_bytes(std::int64_t a, std::int64_t b) noexcept;

}  // namespace gridbuf
