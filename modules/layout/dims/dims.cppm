// gridbuf.layout.dims: the names of dimensions, and what a layout map may be.
//
// Purpose. A field on a grid has dimensions with a meaning: "I", "J" and "K" are the axes of space,
// and "0", "1", "2", ... number the data dimensions (vector components, tracers). This module turns
// what a user wrote into such names or into an error that names the offender, and holds the rules
// of the *layout map*, which says in what order the dimensions lie in memory.
//
// Key choices. A name is a value of one integer (`Dim`), not a string: comparing and ordering are
// then exact (data dimension 10 comes after 2), and a list of names needs no heap. There is one
// spelling per name ("1", never "01"), so equal names are equal text.
//
// A layout map is a list of ranks: entry i belongs to dimension i; 0 is the largest stride and
// ndim - 1 the smallest, which is contiguous. (2, 0, 1) on (3, 4, 5) elements of 8 bytes gives the
// strides (8, 120, 24). Reading it as the inverse permutation ("the order of the dimensions") gives
// another answer for every 3-cycle and the same one for everything simpler, which is why all tests
// use 3-cycles. `axes_by_rank` converts to that other form explicitly.

module;

#include <compare>
#include <cstdint>
#include <limits>
#include <span>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

export module gridbuf.layout.dims;

import gridbuf.layout.extents;

export namespace gridbuf {

/// The number of spatial axes: I, J and K.
inline constexpr int kSpatialAxes = 3;

/// The largest number that a data dimension may have.
inline constexpr int kMaxDataDim = std::numeric_limits<std::int32_t>::max();

/// The name of one dimension: I, J, K or a data dimension's number. Ordered I < J < K < 0 < 1 < ...
class Dim {
 public:
  constexpr Dim() noexcept = default;

  /// Axis 0 = I, 1 = J, 2 = K. Requires 0 <= axis < kSpatialAxes.
  static constexpr Dim spatial(int axis) noexcept { return Dim(axis - kSpatialAxes); }
  /// Data dimension `number`. Requires 0 <= number <= kMaxDataDim.
  static constexpr Dim data(int number) noexcept { return Dim(number); }

  constexpr bool is_spatial() const noexcept { return code_ < 0; }
  /// 0 = I, 1 = J, 2 = K. Requires is_spatial().
  constexpr int spatial_axis() const noexcept { return code_ + kSpatialAxes; }
  /// The number of a data dimension. Requires !is_spatial().
  constexpr int number() const noexcept { return code_; }

  friend constexpr auto operator<=>(const Dim&, const Dim&) noexcept = default;

 private:
  explicit constexpr Dim(std::int32_t code) noexcept : code_(code) {}
  // -3, -2, -1 for I, J, K; the number for data dimensions. Without an initialiser, so that a list
  // of dimensions costs nothing to make; `Dim{}` is data dimension 0.
  std::int32_t code_;
};

inline constexpr Dim kDimI = Dim::spatial(0);
inline constexpr Dim kDimJ = Dim::spatial(1);
inline constexpr Dim kDimK = Dim::spatial(2);

/// The names of an array's dimensions, by position.
using Dims = SmallVec<Dim>;

/// "I", "J", "K" or the number in decimal.
std::string to_string(Dim dim);

/// A tuple of names as Python writes it: "('I', 'J', '0')".
std::string to_string(const Dims& dims);

/// Any text that was meant as a name, as messages show it: in quotes, cut after some 40 bytes, and
/// valid UTF-8 even if the text is not.
std::string quoted_name(std::string_view name);

/// The names when none are given: I, J, K, then 0, 1, ... Requires 0 <= ndim <= kMaxNdim.
constexpr Dims default_dims(int ndim) noexcept {
  Dims dims(ndim, kDimI);
  for (int axis = 1; axis < ndim; ++axis) {
    dims[axis] = axis < kSpatialAxes ? Dim::spatial(axis) : Dim::data(axis - kSpatialAxes);
  }
  return dims;
}

/// One name. InvalidArgument, with the name in it, unless it is "I", "J", "K" or a decimal number
/// from 0 to kMaxDataDim without sign, space or leading zeros.
absl::StatusOr<Dim> parse_dim(std::string_view name);

/// The names in a string of one-character names, such as "IJK" or "KI0", for an array of `ndim`
/// dimensions. InvalidArgument for a character that is no name, a repeat, or another number of
/// names.
absl::StatusOr<Dims> parse_dims(std::string_view one_character_names, int ndim);

/// The same for a sequence of names, such as {"I", "10"}.
absl::StatusOr<Dims> parse_dims(std::span<const std::string_view> names, int ndim);

/// OK if `dims` names each of `ndim` dimensions and none twice, else InvalidArgument.
absl::Status validate_dims(const Dims& dims, int ndim);

/// The lowest-numbered data dimension that `dims` does not use; what a new axis is called.
constexpr Dim unused_data_dim(const Dims& dims) noexcept {
  for (int number = 0;; ++number) {
    bool used = false;
    for (const Dim dim : dims) used = used || dim == Dim::data(number);
    if (!used) return Dim::data(number);
  }
}

/// C order: rank = position, the last dimension contiguous.
constexpr LayoutMap c_order(int ndim) noexcept {
  LayoutMap layout(ndim, 0);
  for (int axis = 1; axis < ndim; ++axis) layout[axis] = axis;
  return layout;
}

/// Fortran order: rank = ndim - 1 - position, the first dimension contiguous.
constexpr LayoutMap f_order(int ndim) noexcept {
  LayoutMap layout;
  for (int axis = 0; axis < ndim; ++axis) layout.push_back(ndim - 1 - axis);
  return layout;
}

/// Whether `layout` is a permutation of 0 .. size - 1.
constexpr bool is_permutation(const LayoutMap& layout) noexcept {
  std::uint64_t seen = 0;
  for (const int rank : layout) {
    if (rank < 0 || rank >= layout.size()) return false;
    seen |= std::uint64_t{1} << rank;
  }
  const int ndim = layout.size();
  return seen == (ndim == kMaxNdim ? ~std::uint64_t{0} : (std::uint64_t{1} << ndim) - 1);
}

/// OK if `layout` is a permutation of 0 .. ndim - 1, else InvalidArgument saying what is wrong.
absl::Status validate_layout_map(const LayoutMap& layout, int ndim);

/// The dimensions from the largest stride to the smallest: the inverse of the layout map.
/// Requires is_permutation(layout).
constexpr Axes axes_by_rank(const LayoutMap& layout) noexcept {
  Axes axes(layout.size(), 0);
  for (int axis = 0; axis < layout.size(); ++axis) axes[layout[axis]] = axis;
  return axes;
}

/// The layout map of an array that is not ours: ranks by descending |stride|, ties in order of
/// position. Extents of 1 carry no order, so such dimensions keep their position as rank; an array
/// without elements has no order at all and counts as C order. Requires equal lengths.
LayoutMap layout_of(const Extents& shape, const Extents& strides_bytes);

}  // namespace gridbuf
