// gridbuf.layout.halo: the margin around the points that a computation owns.
//
// Purpose. A stencil reads neighbours, so a field carries extra points at both ends of a dimension:
// its halo. The halo says which points are domain and which are margin. It never changes the shape
// and never moves memory; it only gives the default of the aligned index, so that the first point
// that a computation writes is the one that is aligned.
//
// Key choice. One form: a (lower, upper) pair per dimension. The short form of users, one number
// for both ends, is a constructor of the pair; there is no second code path for it. What a view
// keeps of a halo is defined by points and not by arithmetic on bounds: the halo of a view is those
// of its points that were halo before. That makes every step, reversed ones included, one rule.

module;

#include <cstdint>
#include <string>

#include "absl/status/status.h"

export module gridbuf.layout.halo;

import gridbuf.layout.checked;
import gridbuf.layout.extents;

export namespace gridbuf {

/// The halo of one dimension, in points: `lower` at index 0, `upper` at the end.
struct HaloWidth {
  std::int64_t lower = 0;
  std::int64_t upper = 0;

  /// The short form: `width` points at both ends.
  static constexpr HaloWidth symmetric(std::int64_t width) noexcept { return {width, width}; }

  friend constexpr bool operator==(const HaloWidth&, const HaloWidth&) noexcept = default;
};

/// One pair per dimension.
using Halo = SmallVec<HaloWidth>;

/// No halo: (0, 0) for each of `ndim` dimensions.
constexpr Halo no_halo(int ndim) noexcept { return Halo(ndim, HaloWidth{}); }

/// OK if there is one pair per extent, none is negative, and lower + upper <= extent in each, else
/// InvalidArgument with dimension, pair and bound. An empty `shape` has an empty halo.
absl::Status validate_halo(const Halo& halo, const Extents& shape);

/// The lower halo of each dimension: the first domain point, and the default of the aligned index.
/// A lower halo that leaves no point (lower = extent > 0) gives the last index, because an aligned
/// index must be an index. Requires validate_halo(halo, shape).
constexpr Extents first_domain_index(const Halo& halo, const Extents& shape) noexcept {
  Extents index;
  for (int axis = 0; axis < halo.size(); ++axis) {
    const std::int64_t last = shape[axis] > 0 ? shape[axis] - 1 : 0;
    index.push_back(halo[axis].lower < last ? halo[axis].lower : last);
  }
  return index;
}

/// The halo of `points` view points along a dimension of `extent` points with `halo`, where view
/// point k shows point start + step * k: how many at either end of the view lie outside the old
/// domain. Requires that the view points exist (each start + step * k is in [0, extent)) and step
/// != 0.
constexpr HaloWidth halo_of_slice(HaloWidth halo, std::int64_t extent, std::int64_t start,
                                  std::int64_t step, std::int64_t points) noexcept {
  if (step < 0) {  // Count from the other end.
    return halo_of_slice({halo.upper, halo.lower}, extent, extent - 1 - start, -step, points);
  }
  const auto points_before = [=](std::int64_t bound) {  // View points that show a point < bound.
    const std::int64_t count = bound <= start ? 0 : checked::quotient(bound - start - 1, step) + 1;
    return count < points ? count : points;
  };
  return {points_before(halo.lower), points - points_before(extent - halo.upper)};
}

/// "((1, 2), (0, 0))".
std::string to_string(const Halo& halo);

}  // namespace gridbuf
