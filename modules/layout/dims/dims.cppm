// gridbuf.layout.dims: names of dimensions.
//
// A dimension's name is one integer (`Dim`), so data dimension 10 comes after 2, and a list of
// names needs no heap memory. The letters of other names are in a table of the process, which only
// grows.
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

import gridbuf.layout.sizes;

export namespace gridbuf {

/// The number of spatial axes: I, J and K.
inline constexpr int kSpatialAxes = 3;

/// The largest number that a data dimension may have.
inline constexpr int kMaxDataDim = std::numeric_limits<std::int32_t>::max();

/// What the points of a dimension are. In the order of the dimensions of a result.
enum class DimKind : std::uint8_t {
  kHorizontal,  // Cells, edges, rows, columns.
  kLocal,       // The neighbours of a point.
  kVertical,    // Levels.
  kData,        // Components, tracers, time.
};

/// "horizontal", "local", "vertical" or "data".
std::string_view to_string(DimKind kind) noexcept;

/// The kind of that name, or InvalidArgument.
absl::StatusOr<DimKind> parse_dim_kind(std::string_view text);

/// One dimension: a name with a kind. I and J are horizontal, K is vertical, numbers are data;
/// other names come from `make_dim` and `parse_dim`. Ordered by kind, then by name; numbers precede
/// other data dimensions: I < J < K < 0 < 1 < ... One integer, so that copies and comparisons are
/// free.
///
/// A dimension also knows how it came about, because arithmetic depends on it: one of extent 1 that
/// a reduction has kept, or that `None` has added, stretches to the other operands' extent. Or it
/// knows the index of its first point, as a Fortran array its lower bound: then points of one index
/// are paired, not of one position. Views, copies and results pass this on with the dimension.
/// Comparisons are of the name and kind alone.
class Dim {
 public:
  constexpr Dim() noexcept = default;

  /// Axis 0 = I, 1 = J, 2 = K. Requires 0 <= axis < kSpatialAxes.
  static constexpr Dim spatial(int axis) noexcept { return Dim(axis - kSpatialAxes, 0); }
  /// Data dimension `number`. Requires 0 <= number <= kMaxDataDim.
  static constexpr Dim data(int number) noexcept { return Dim(number, 0); }

  /// The name at `index` in the table of names, see dims.cc. Requires 0 <= index <= kMaxNameIndex.
  static constexpr Dim named(int index, DimKind kind) noexcept {
    return Dim(-1 - kSpatialAxes - (index << 2 | static_cast<int>(kind)), 0);
  }

  /// Whether it is I, J or K.
  constexpr bool is_spatial() const noexcept { return code() < 0 && !is_named(); }
  /// 0 = I, 1 = J, 2 = K. Requires is_spatial().
  constexpr int spatial_axis() const noexcept { return code() + kSpatialAxes; }
  /// Whether it is a number.
  constexpr bool is_number() const noexcept { return code() >= 0; }
  /// The number. Requires is_number().
  constexpr int number() const noexcept { return code(); }
  /// Whether it is another name.
  constexpr bool is_named() const noexcept { return code() < -kSpatialAxes; }
  /// The place in the table of names, where I, J and K are the first. Requires !is_number().
  constexpr int name_index() const noexcept {
    return is_named() ? (-1 - kSpatialAxes - code()) >> 2 : spatial_axis();
  }

  constexpr DimKind kind() const noexcept {
    if (is_named()) return static_cast<DimKind>((-1 - kSpatialAxes - code()) & 3);
    if (is_number()) return DimKind::kData;
    return spatial_axis() == 2 ? DimKind::kVertical : DimKind::kHorizontal;
  }
  /// Whether it is a dimension of the grid: horizontal or vertical.
  constexpr bool is_grid() const noexcept {
    return kind() == DimKind::kHorizontal || kind() == DimKind::kVertical;
  }
  /// A number that differs for different dimensions of one process.
  constexpr std::int32_t code() const noexcept { return static_cast<std::int32_t>(bits_ >> 32); }

  /// Whether its extent of 1 stretches to the other operands' extent.
  constexpr bool is_stretchable() const noexcept { return !has_start() && property() != 0; }
  /// Whether it is stretchable and called by a number only for lack of a name. It pairs by place.
  constexpr bool is_unnamed() const noexcept { return property() == kUnnamed; }
  /// The dimension, stretchable. Requires an extent of 1.
  constexpr Dim stretchable() const noexcept {
    return Dim(code(), is_unnamed() ? kUnnamed : kStretchable);
  }
  /// The dimension, stretchable and without a name. Requires an extent of 1.
  constexpr Dim unnamed() const noexcept { return Dim(code(), kUnnamed); }
  /// The dimension, neither stretchable nor without a name, with an unknown start.
  constexpr Dim plain() const noexcept { return Dim(code(), 0); }

  /// Bounds of a start.
  static constexpr std::int64_t kMinStart = std::numeric_limits<std::int32_t>::min() + 4;
  static constexpr std::int64_t kMaxStart = std::numeric_limits<std::int32_t>::max();
  /// Whether the index of its first point is known.
  constexpr bool has_start() const noexcept { return property() >= kStarts; }
  /// That index. Requires has_start().
  constexpr std::int64_t start() const noexcept { return property() - kStarts + kMinStart; }
  /// The dimension with this start; beyond the bounds it is unknown.
  constexpr Dim starting_at(std::int64_t start) const noexcept {
    if (start < kMinStart || start > kMaxStart) return plain();
    return Dim(code(), start - kMinStart + kStarts);
  }
  /// Whether they are equal in all of this.
  constexpr bool is_identical(Dim other) const noexcept { return bits_ == other.bits_; }

  friend constexpr bool operator==(const Dim& a, const Dim& b) noexcept {
    return a.code() == b.code();
  }
  friend constexpr std::strong_ordering operator<=>(const Dim& a, const Dim& b) noexcept {
    if (!a.is_named() && !b.is_named()) return a.code() <=> b.code();
    return compare_named(a, b);
  }

 private:
  static std::strong_ordering compare_named(Dim a, Dim b) noexcept;

  static constexpr std::int64_t kStretchable = 1;
  static constexpr std::int64_t kUnnamed = 2;
  static constexpr std::int64_t kStarts = 4;

  constexpr Dim(std::int32_t code, std::int64_t property) noexcept
      : bits_((std::int64_t{code} << 32) + property) {}
  constexpr std::int64_t property() const noexcept { return bits_ & 0xFFFFFFFF; }

  // In the upper half the code: -3, -2, -1 for I, J, K; the number for numbers; below, the place of
  // a name and its kind. In the lower half a property, or a start from kStarts on. Without an
  // initialiser, so that a list of dimensions costs nothing to make; `Dim{}` is the number 0.
  std::int64_t bits_;
};

/// The largest place of a name: about a million different names in a process.
inline constexpr int kMaxNameIndex = (1 << 20) - 1;

/// The largest number of characters in a name.
inline constexpr int kMaxNameLength = 63;

inline constexpr Dim kDimI = Dim::spatial(0);
inline constexpr Dim kDimJ = Dim::spatial(1);
inline constexpr Dim kDimK = Dim::spatial(2);

/// The names of an array's dimensions, by position.
using Dims = SmallVec<Dim>;

/// The name: "I", "J", "K", the number in decimal, or another one.
std::string to_string(Dim dim);

/// Whether two dimensions have one name, of one kind or of two.
constexpr bool have_one_name(Dim a, Dim b) noexcept {
  if (!a.is_named() && !b.is_named()) return a == b;
  return !a.is_number() && !b.is_number() && a.name_index() == b.name_index();
}

/// The error of one name with two kinds, for dimensions that differ and have one name.
absl::Status different_kinds(Dim a, Dim b);

/// A tuple of names as Python writes it: "('I', 'J', '0')".
std::string to_string(const Dims& dims);

/// A text that a user passed as a name, for messages: in quotes, cut after about 40 bytes, and
/// always valid UTF-8.
std::string quoted_name(std::string_view name);

/// The names when none are given: I, J, K, then 0, 1, ... Requires 0 <= ndim <= kMaxNdim.
constexpr Dims default_dims(int ndim) {
  Dims dims(ndim, kDimI);
  for (int axis = 1; axis < ndim; ++axis) {
    dims[axis] = axis < kSpatialAxes ? Dim::spatial(axis) : Dim::data(axis - kSpatialAxes);
  }
  return dims;
}

/// The dimension of a name, which is an identifier of 1 to kMaxNameLength characters, or a decimal
/// number from 0 to kMaxDataDim without sign, space or leading zeros. Letters beyond ASCII are
/// not normalised. InvalidArgument, with the name in it, for other names, for a number that is not
/// data, and for more than kMaxNameIndex + 1 names.
absl::StatusOr<Dim> make_dim(std::string_view name, DimKind kind);

/// As above, of the kind that was declared for the name; without a declaration, horizontal.
absl::StatusOr<Dim> parse_dim(std::string_view name);

/// The staggered half of a dimension, whose points are between its own, under GT4Py's name:
/// "_StaggeredI" of "I". Of a half, its dimension. InvalidArgument for a number, and for a name
/// that is too long.
absl::StatusOr<Dim> half_of(Dim dim);

/// Whether one is the staggered half of the other, or both are the half of one dimension: by
/// GT4Py's name, or declared.
bool are_halves(Dim a, Dim b);

/// Makes `name` a name of `half`, which is a staggered half, with its kind, in the whole process.
/// InvalidArgument if it is none, and for a name that is fixed, or was declared with another kind
/// or as another half.
absl::Status declare_half(Dim name, Dim half);

/// Makes the kinds of all `dims` those of their names in `parse_dim` and `parse_dims`, in the whole
/// process. InvalidArgument, and no declaration, if a name has two kinds, by an earlier declaration
/// or here.
absl::Status declare_dims(std::span<const Dim> dims);

/// The names in a string of one-character names, such as "IJK" or "KI0", for an array of `ndim`
/// dimensions. InvalidArgument for a character that is not a name, for a repeated name, or for
/// another number of names.
absl::StatusOr<Dims> parse_dims(std::string_view one_character_names, int ndim);

/// The names in a sequence, such as {"I", "10"}. Errors as above.
absl::StatusOr<Dims> parse_dims(std::span<const std::string_view> names, int ndim);

/// Whether `dims` has `ndim` distinct names.
constexpr bool are_names_of(const Dims& dims, int ndim) noexcept {
  if (dims.size() != ndim) return false;
  for (int i = 0; i < ndim; ++i) {
    for (int j = 0; j < i; ++j) {
      if (have_one_name(dims[i], dims[j])) return false;
    }
  }
  return true;
}

/// OK if are_names_of(dims, ndim), else InvalidArgument with the reason.
absl::Status validate_dims(const Dims& dims, int ndim);

}  // namespace gridbuf
