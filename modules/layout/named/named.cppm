// gridbuf.layout.named: broadcasting along equal dimension names.
//
// Purpose. NumPy pairs dimensions by position, counted from the last one, so that a field over
// (I, J) and a profile over K can be added only after somebody has put in the right axes of extent
// 1. Fields know what their dimensions mean. Here arrays are paired by the *names* of dimensions:
// (I, J) with extents (2, 3) and (K) with extent 4 join to (I, J, K) with extents (2, 3, 4), and
// each is repeated along what it does not have. What an operation on such arrays needs is two
// answers: what does the result look like (`join`), and how is an operand seen in the result's
// order (`named_map`, `named_broadcast_map`)?
//
// Key choice. Extents of one name must be equal; an extent of 1 is not stretched. A field over I
// with one point is a field with one point, and adding it to a field with 100 is a mistake; "has no
// dimension I" is said by not having it. So no result depends on an extent that happens to be 1.
//
// The result is made to be computed with: its halo and aligned index are the largest of the
// operands', dimension by dimension, its alignment is the least common multiple, and its layout is
// that of the first operand. Dimensions that the first operand does not have are placed as a preset
// would (gridbuf.layout.preset): data dimensions outermost, spatial ones where the first base ranks
// that agree with the operand's own order put them. Where the largest halo does not fit or the
// multiple is out of bounds, the first operand's own is used: a result never fails for a wish.

module;

#include <array>
#include <cstdint>
#include <optional>
#include <span>

#include "absl/status/statusor.h"

export module gridbuf.layout.named;

import gridbuf.layout.checked;
export import gridbuf.layout.dims;
export import gridbuf.layout.extents;
export import gridbuf.layout.halo;
export import gridbuf.layout.index_map;
import gridbuf.layout.preset;
import gridbuf.layout.viewed;

export namespace gridbuf {

/// The dimensions of an array: shape[i] is the extent of dims[i]. All that arrays which are not
/// ours say of themselves. Requires distinct names, one per extent.
struct NamedShape {
  Dims dims = {};
  Extents shape = {};

  friend constexpr bool operator==(const NamedShape&, const NamedShape&) noexcept = default;
};

/// All that a request for a field holds but its element type. Requires one entry per dimension, and
/// valid ones (gridbuf.layout.dims, gridbuf.layout.halo, gridbuf.layout).
struct NamedLayout {
  Dims dims = {};
  Extents shape = {};
  Halo halo = {};
  Extents aligned_index = {};
  LayoutMap layout = {};
  std::int64_t alignment_bytes = 1;

  friend constexpr bool operator==(const NamedLayout&, const NamedLayout&) noexcept = default;
};

/// The position of `dim` in `dims`, or -1.
constexpr int position_of(Dim dim, const Dims& dims) noexcept {
  for (int i = 0; i < dims.size(); ++i) {
    if (dims[i] == dim) return i;
  }
  return -1;
}

/// What an operation on `fields` and `others` gives; `others` take part with names and extents
/// only. Its dimensions have the order of the first field that has them all, else I, J, K and then
/// data dimensions by number. InvalidArgument, with the dimension and both extents, if two operands
/// disagree about an extent, or for more than kMaxNdim names.
absl::StatusOr<NamedLayout> join(std::span<const NamedLayout> fields,
                                 std::span<const NamedShape> others = {});

/// `array` with its dimensions in the order of `target`; those that it does not have are axes of
/// extent 1. InvalidArgument, with the name, if it has one that `target` lacks.
absl::StatusOr<IndexMap> named_map(const NamedShape& array, const Dims& target);

/// `array` repeated to all of `target`: what an assignment to `target` reads. InvalidArgument, with
/// the name, if it has a dimension that `target` lacks or an extent that is another one there.
absl::StatusOr<IndexMap> named_broadcast_map(const NamedShape& array, const NamedShape& target);

// ---- The arithmetic, constexpr. ----

/// The base ranks that presets know, in the order in which they are tried.
inline constexpr std::array<std::array<int, kSpatialAxes>, 6> kBaseRanks{
    {{0, 1, 2}, {2, 1, 0}, {2, 0, 1}, {1, 2, 0}, {0, 2, 1}, {1, 0, 2}}};

/// The spatial axes from the outermost to the innermost, by the first of kBaseRanks that orders
/// those in `outer_to_inner` as they are there.
constexpr std::array<Dim, kSpatialAxes> spatial_order_of(const Dims& outer_to_inner) noexcept {
  for (const std::array<int, kSpatialAxes>& ranks : kBaseRanks) {
    int previous = -1;
    bool agrees = true;
    for (const Dim dim : outer_to_inner) {
      if (!dim.is_spatial()) continue;
      agrees = agrees && ranks[dim.spatial_axis()] > previous;
      previous = ranks[dim.spatial_axis()];
    }
    if (!agrees) continue;
    std::array<Dim, kSpatialAxes> order{};
    for (int axis = 0; axis < kSpatialAxes; ++axis) order[ranks[axis]] = Dim::spatial(axis);
    return order;
  }
  __builtin_unreachable();  // Every order of three names is in kBaseRanks.
}

/// `dims` from the largest stride to the smallest.
constexpr Dims outer_to_inner(const Dims& dims, const LayoutMap& layout) noexcept {
  Dims order;
  for (const int axis : axes_by_rank(layout)) order.push_back(dims[axis]);
  return order;
}

/// Puts the spatial axes of `target` that `order` lacks where the base ranks have them: next to the
/// one that is outside of them there, or, if there is none, just outside of those within.
constexpr void place_spatial(Dims& order, const Dims& target) noexcept {
  int previous = -1;  // Where the spatial axis outside of the current one is.
  for (const Dim dim : spatial_order_of(order)) {
    const int present = position_of(dim, order);
    if (present >= 0) {
      previous = present;
    } else if (position_of(dim, target) >= 0) {
      int position = previous + 1;
      if (previous < 0) {
        while (position < order.size() && !order[position].is_spatial()) ++position;
      }
      order.insert(position, dim);
      previous = position;
    }
  }
}

/// The layout map for `target` that keeps the order in which `dims` lie by `layout`. Requires that
/// `target` has all of `dims`.
constexpr LayoutMap extended_layout(const Dims& dims, const LayoutMap& layout,
                                    const Dims& target) noexcept {
  Dims order = outer_to_inner(dims, layout);
  place_spatial(order, target);
  int added = 0;  // Data dimensions, outermost, the lowest number first.
  for (const Dim dim : target) {
    if (dim.is_spatial() || position_of(dim, dims) >= 0) continue;
    int position = 0;
    while (position < added && order[position] < dim) ++position;
    order.insert(position, dim);
    ++added;
  }
  LayoutMap result;
  for (const Dim dim : target) result.push_back(position_of(dim, order));
  return result;
}

/// The least common multiple of two alignments, or nothing if it is above kMaxAlignmentBytes.
constexpr std::optional<std::int64_t> common_alignment_bytes(std::int64_t a,
                                                             std::int64_t b) noexcept {
  const std::optional<std::int64_t> multiple = checked::mul(checked::padding_multiple(a, b), b);
  return multiple && *multiple <= checked::kMaxAlignmentBytes ? multiple : std::nullopt;
}

/// What is left of `field` when `axes` are reduced to a point: without them, or, with `keep`, with
/// extents of 1 that have no halo. Requires distinct axes of `field`, in ascending order.
constexpr NamedLayout reduced_layout(const NamedLayout& field, const Axes& axes,
                                     bool keep) noexcept {
  NamedLayout result = field;
  if (keep) {
    for (const int axis : axes) {
      result.shape[axis] = 1;
      result.halo[axis] = {};
      result.aligned_index[axis] = 0;
    }
    return result;
  }
  IndexMap map(field.shape);
  for (int i = axes.size() - 1; i >= 0; --i) map.fix(axes[i], 0);
  result.dims = apply(map, field.dims);
  result.shape = map.shape();
  result.halo = apply(map, field.halo);
  result.aligned_index = apply_to_index(map, field.aligned_index);
  result.layout = apply_to_layout(map, field.layout);
  return result;
}

}  // namespace gridbuf
