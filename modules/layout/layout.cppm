// gridbuf.layout: where the elements of an array are, before there is any memory.
//
// `make_plan` turns a `LayoutRequest` (shape, item size, layout map, alignment, aligned index,
// names, halo) into a `Layout`: byte strides, padded shape, sizes, and which element is aligned.
// Allocation, copies and exports read it, and none of them computes a size. This library is
// arithmetic only: it does not allocate, read files or use Python. Nearly all of it is constexpr.
// It makes texts only for errors.
//
// Sizes. `gridbuf::checked` is the only code that multiplies, adds and rounds sizes: array
// libraries that computed byte counts in several places have security advisories for it. A result
// is a value or nothing (`std::optional`), so a wrapped number cannot be used by mistake. The limit
// is PTRDIFF_MAX, because a larger object cannot be indexed by pointer differences.
//
// Padding follows the lcm rule. With more than one dimension, the extent of the contiguous
// dimension is rounded up to a multiple of alignment / gcd(alignment, itemsize) elements. A row is
// then a whole number of alignments for every item size. So *an element is aligned if its index in
// the contiguous dimension equals that of the aligned index*. A layout promises offsets; the
// allocator promises one address: (block + aligned_offset_bytes()) % alignment_bytes() == 0.
// Because the promises are separate, a layout is a plain value. It can be compared, printed and
// made at compile time.
//
// Layout maps are lists of ranks. Entry i belongs to dimension i; rank 0 has the largest stride,
// rank ndim - 1 the smallest. (2, 0, 1) on (3, 4, 5) elements of 8 bytes gives the strides (8, 120,
// 24). The inverse map lists the dimensions by rank; `axes_by_rank` computes it. A swap of two
// dimensions is its own inverse, so tests use 3-cycles, which are not.
//
// Names. A dimension's name is one integer (`Dim`), so data dimension 10 comes after 2, and a list
// of names needs no heap memory. A preset orders dimensions by name and not by position: a (K, J,
// I) array gets the memory layout of an (I, J, K) array. A halo is a (lower, upper) pair per
// dimension. It never changes the shape; it only gives the default of the aligned index.
//
// A request gives the same layout on every machine. All functions are safe on any thread.

module;

#include <algorithm>
#include <array>
#include <cassert>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <limits>
#include <memory>
#include <numeric>
#include <optional>
#include <ostream>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

export module gridbuf.layout;

export import gridbuf.base;

export namespace gridbuf::checked {

// ---- Checked sizes. ----

// Results are in [-kMaxBytes, kMaxBytes], so their negatives exist, too.

/// The largest number of bytes or of elements: 2^63 - 1.
inline constexpr std::int64_t kMaxBytes = std::numeric_limits<std::ptrdiff_t>::max();

/// The largest alignment of a request: 1 MiB. Layouts and allocations both check it.
inline constexpr std::int64_t kMaxAlignmentBytes = std::int64_t{1} << 20;

/// a * b, or nothing if it is outside [-kMaxBytes, kMaxBytes].
constexpr std::optional<std::int64_t> mul(std::int64_t a, std::int64_t b) noexcept {
  std::int64_t result = 0;
  if (__builtin_mul_overflow(a, b, &result) || result < -kMaxBytes) return std::nullopt;
  return result;
}

/// a + b, or nothing if it is outside [-kMaxBytes, kMaxBytes].
constexpr std::optional<std::int64_t> add(std::int64_t a, std::int64_t b) noexcept {
  std::int64_t result = 0;
  if (__builtin_add_overflow(a, b, &result) || result < -kMaxBytes) return std::nullopt;
  return result;
}

/// a / b. Most divisors here are 1, and a 64-bit division takes as long as ten additions. Requires
/// b > 0.
constexpr std::int64_t quotient(std::int64_t a, std::int64_t b) noexcept {
  return b == 1 ? a : a / b;
}

/// The smallest multiple of `multiple` that is >= `value`. Nothing if it exceeds kMaxBytes, or if
/// value < 0 or multiple < 1. `multiple` need not be a power of two.
constexpr std::optional<std::int64_t> align_up(std::int64_t value, std::int64_t multiple) noexcept {
  if (value < 0 || multiple < 1) return std::nullopt;
  const std::int64_t excess = value % multiple;
  return excess == 0 ? std::optional(value) : add(value, multiple - excess);
}

/// The product of `extents` (1 for none). A zero extent makes the product 0. As in NumPy, the
/// product of the other extents must still fit, because strides are products of them. Nothing for
/// negative extents.
constexpr std::optional<std::int64_t> product(std::span<const std::int64_t> extents) noexcept {
  std::int64_t result = 1;
  bool any_zero = false;
  for (const std::int64_t extent : extents) {
    if (extent < 0) return std::nullopt;
    any_zero = any_zero || extent == 0;
    const std::optional<std::int64_t> next = mul(result, extent == 0 ? 1 : extent);
    if (!next) return std::nullopt;
    result = *next;
  }
  return any_zero ? 0 : result;
}

/// The contiguous extent is rounded up to a multiple of this many elements, so that all rows start
/// alike: alignment / gcd(alignment, itemsize). In bytes it is lcm(alignment, itemsize), so every
/// item size divides it. For an item size of 0 it is 1 element. Requires alignment_bytes >= 1,
/// itemsize_bytes >= 0.
constexpr std::int64_t padding_multiple(std::int64_t alignment_bytes,
                                        std::int64_t itemsize_bytes) noexcept {
  return alignment_bytes / std::gcd(alignment_bytes, itemsize_bytes);
}

/// The range of bytes that an array touches: offsets [lowest_bytes, highest_bytes), counted from
/// the origin of the array's offsets.
struct ByteHull {
  std::int64_t lowest_bytes = 0;
  std::int64_t highest_bytes = 0;  // One past the last byte; equal to lowest_bytes if empty.

  constexpr std::int64_t length_bytes() const noexcept { return highest_bytes - lowest_bytes; }
  friend constexpr bool operator==(const ByteHull&, const ByteHull&) = default;
};

/// The hull of an array whose element (0, ..., 0) starts at `offset_bytes`. Strides may be negative
/// or zero. An array without elements touches nothing: its hull is [offset, offset), whatever its
/// strides. Strides of extents of 1 are ignored. Nothing if a bound or the length exceeds the
/// limit, if `shape` and `strides_bytes` differ in length, or for a negative extent or itemsize.
constexpr std::optional<ByteHull> byte_hull(std::span<const std::int64_t> shape,
                                            std::span<const std::int64_t> strides_bytes,
                                            std::int64_t itemsize_bytes,
                                            std::int64_t offset_bytes = 0) noexcept {
  if (shape.size() != strides_bytes.size() || itemsize_bytes < 0) return std::nullopt;
  if (offset_bytes < -kMaxBytes) return std::nullopt;
  bool any_zero = false;
  for (const std::int64_t extent : shape) {
    if (extent < 0) return std::nullopt;
    any_zero = any_zero || extent == 0;
  }
  if (any_zero) return ByteHull{offset_bytes, offset_bytes};

  std::optional<std::int64_t> lowest = offset_bytes;
  std::optional<std::int64_t> highest = add(offset_bytes, itemsize_bytes);
  for (std::size_t axis = 0; axis < shape.size(); ++axis) {
    if (shape[axis] == 1) continue;
    const std::optional<std::int64_t> reach = mul(shape[axis] - 1, strides_bytes[axis]);
    if (!reach || !lowest || !highest) return std::nullopt;
    (*reach < 0 ? lowest : highest) = add(*reach < 0 ? *lowest : *highest, *reach);
  }
  if (!lowest || !highest || !add(*highest, -*lowest)) return std::nullopt;
  return ByteHull{*lowest, *highest};
}

}  // namespace gridbuf::checked

export namespace gridbuf {

// ---- Small vectors: shapes, strides, indices, layout maps. ----

/// The most dimensions that an array can have, as in NumPy.
inline constexpr int kMaxNdim = 64;

/// A vector of at most kMaxNdim values. `in_place` of them are in the object; a longer vector is on
/// the heap, so that making, copying and lengthening it can throw std::bad_alloc. Moves never throw.
/// Sizes are `int`, like numbers of dimensions.
template <class T, int in_place = 8>
  requires std::is_trivially_copyable_v<T>
class SmallVec {
 public:
  using value_type = T;
  using iterator = T*;
  using const_iterator = const T*;

  /// Whether no vector of this type is on the heap.
  static constexpr bool kNeverThrows = in_place >= kMaxNdim;

  constexpr SmallVec() noexcept {
    // Indeterminate at run time: writing entries that are not used takes longer than the rest.
    if (std::is_constant_evaluated()) std::construct_at(&own_);
  }

  /// `count` times `value`. Requires 0 <= count <= kMaxNdim.
  constexpr SmallVec(int count, const T& value) noexcept(kNeverThrows) : SmallVec() {
    std::fill_n(make_room(count), count, value);
    size_ = count;
  }

  /// The values listed. Requires at most kMaxNdim of them.
  constexpr SmallVec(std::initializer_list<T> values) noexcept(kNeverThrows)
      : SmallVec(std::span<const T>(values.begin(), values.size())) {}

  /// A copy of `values`. Requires at most kMaxNdim; use `make_extents` for values that a user
  /// passed.
  constexpr explicit SmallVec(std::span<const T> values) noexcept(kNeverThrows) : SmallVec() {
    require(values.size() <= static_cast<std::size_t>(kMaxNdim));
    const int count = static_cast<int>(values.size());
    std::copy_n(values.data(), count, make_room(count));
    size_ = count;
  }

  /// The values of a vector with another number of entries in place.
  template <int other_in_place>
  constexpr SmallVec(const SmallVec<T, other_in_place>& other) noexcept(kNeverThrows)
      : SmallVec(other.span()) {}

  constexpr SmallVec(const SmallVec& other) noexcept(kNeverThrows) : SmallVec() { copy(other); }
  constexpr SmallVec(SmallVec&& other) noexcept : SmallVec() { take(other); }
  constexpr SmallVec& operator=(const SmallVec& other) noexcept(kNeverThrows) {
    if (this != &other) copy(other);
    return *this;
  }
  constexpr SmallVec& operator=(SmallVec&& other) noexcept {
    if (this != &other) take(other);
    return *this;
  }
  constexpr ~SmallVec() {
    if (on_heap_) delete[] heap_;
  }

  constexpr int size() const noexcept { return size_; }
  constexpr bool empty() const noexcept { return size_ == 0; }

  constexpr T& operator[](int position) noexcept {
    assert(position >= 0 && position < size_);
    return data()[position];
  }
  constexpr const T& operator[](int position) const noexcept {
    assert(position >= 0 && position < size_);
    return data()[position];
  }

  constexpr T* data() noexcept { return on_heap_ ? heap_ : own_.entries; }
  constexpr const T* data() const noexcept { return on_heap_ ? heap_ : own_.entries; }
  constexpr iterator begin() noexcept { return data(); }
  constexpr iterator end() noexcept { return data() + size_; }
  constexpr const_iterator begin() const noexcept { return data(); }
  constexpr const_iterator end() const noexcept { return data() + size_; }

  /// The entries, for functions that take any contiguous range.
  constexpr std::span<const T> span() const noexcept {
    return {data(), static_cast<std::size_t>(size_)};
  }

  /// Appends `value`. Requires size() < kMaxNdim.
  constexpr void push_back(const T& value) noexcept(kNeverThrows) {
    make_room(size_ + 1)[size_] = value;
    ++size_;
  }

  /// Puts `value` before `position`. Requires 0 <= position <= size() < kMaxNdim.
  constexpr void insert(int position, const T& value) noexcept(kNeverThrows) {
    require(position >= 0 && position <= size_);
    T* const entries = make_room(size_ + 1);
    std::copy_backward(entries + position, entries + size_, entries + size_ + 1);
    entries[position] = value;
    ++size_;
  }

  /// Removes the entry at `position`. Requires 0 <= position < size().
  constexpr void erase(int position) noexcept {
    require(position >= 0 && position < size_);
    std::copy(begin() + position + 1, end(), begin() + position);
    --size_;
  }

  friend constexpr bool operator==(const SmallVec& a, const SmallVec& b) noexcept {
    return std::equal(a.begin(), a.end(), b.begin(), b.end());
  }

 private:
  static constexpr void require(bool invariant) noexcept {
    if (!invariant) __builtin_trap();
  }
  /// The entries, with room for `count` of them.
  constexpr T* make_room(int count) noexcept(kNeverThrows) {
    require(count >= 0 && count <= kMaxNdim);
    if constexpr (!kNeverThrows) {
      if (count > in_place && !on_heap_) {
        T* const heap = new T[kMaxNdim];
        std::copy_n(own_.entries, size_, heap);
        std::construct_at(&heap_, heap);
        on_heap_ = true;
      }
    }
    return data();
  }
  constexpr void copy(const SmallVec& other) noexcept(kNeverThrows) {
    copy_entries(other, make_room(other.size_));
  }
  constexpr void take(SmallVec& other) noexcept {
    if (!other.on_heap_) return copy_entries(other, data());
    if (on_heap_) delete[] heap_;
    std::construct_at(&heap_, other.heap_);
    on_heap_ = true;
    size_ = std::exchange(other.size_, 0);
    std::construct_at(&other.own_);
    other.on_heap_ = false;
  }
  constexpr void copy_entries(const SmallVec& other, T* entries) noexcept {
    size_ = other.size_;
    if (!std::is_constant_evaluated() && size_ <= kFew) {
      // A fixed length, because a loop over three entries takes as long as a malloc. The entries
      // behind the last one are never used.
      __builtin_memcpy(static_cast<void*>(entries), other.data(), kFew * sizeof(T));
    } else {
      std::copy_n(other.data(), size_, entries);
    }
  }

  static constexpr int kFew = 4;
  static_assert(in_place >= kFew);
  struct Entries {
    T entries[in_place];
  };
  int size_ = 0;
  bool on_heap_ = false;
  union {
    Entries own_;
    T* heap_;  // kMaxNdim entries
  };
};

/// A shape (elements), a stride list (bytes) or an index (elements): one number per dimension.
using Extents = SmallVec<std::int64_t>;

/// A layout map: entry i is the *rank* of dimension i, 0 for the largest stride and ndim - 1 for
/// the smallest. The inverse permutation is `axes_by_rank`.
using LayoutMap = SmallVec<int>;

/// A list of dimensions, by position, such as the argument of `transpose`.
using Axes = SmallVec<int>;

/// The values as an `Extents`. InvalidArgument for more than kMaxNdim values; it names `what`
/// ("shape", "strides", ...), the number of entries and the bound.
absl::StatusOr<Extents> make_extents(std::span<const std::int64_t> values, std::string_view what);

/// "(3, 4, 5)", "(3,)" or "()": written as a Python tuple, as users type it.
template <class T, int in_place>
std::string to_string(const SmallVec<T, in_place>& values) {
  std::string text = "(";
  for (int i = 0; i < values.size(); ++i) {
    if (i > 0) text += ", ";
    text += std::to_string(values[i]);
  }
  text += values.size() == 1 ? ",)" : ")";
  return text;
}

// ---- Names of dimensions, and layout maps. ----

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

/// One name. InvalidArgument, with the name in it, unless it is "I", "J", "K" or a decimal number
/// from 0 to kMaxDataDim without sign, space or leading zeros.
absl::StatusOr<Dim> parse_dim(std::string_view name);

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
      if (dims[i] == dims[j]) return false;
    }
  }
  return true;
}

/// OK if are_names_of(dims, ndim), else InvalidArgument with the reason.
absl::Status validate_dims(const Dims& dims, int ndim);

/// The lowest-numbered data dimension that `dims` does not use: the name of a new axis.
constexpr Dim unused_data_dim(const Dims& dims) noexcept {
  for (int number = 0;; ++number) {
    bool used = false;
    for (const Dim dim : dims) used = used || dim == Dim::data(number);
    if (!used) return Dim::data(number);
  }
}

/// C order: rank = position, the last dimension contiguous.
constexpr LayoutMap c_order(int ndim) {
  LayoutMap layout(ndim, 0);
  for (int axis = 1; axis < ndim; ++axis) layout[axis] = axis;
  return layout;
}

/// Fortran order: rank = ndim - 1 - position, the first dimension contiguous.
constexpr LayoutMap f_order(int ndim) {
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

/// OK if `layout` is a permutation of 0 .. ndim - 1, else InvalidArgument with the reason.
absl::Status validate_layout_map(const LayoutMap& layout, int ndim);

/// The dimensions from the largest stride to the smallest: the inverse of the layout map.
/// Requires is_permutation(layout).
constexpr Axes axes_by_rank(const LayoutMap& layout) {
  Axes axes(layout.size(), 0);
  for (int axis = 0; axis < layout.size(); ++axis) axes[layout[axis]] = axis;
  return axes;
}

/// The layout map of a foreign array: ranks by descending |stride|, ties in order of position. The
/// stride of an extent of 1 carries no meaning, so such a dimension keeps its position as rank. An
/// array without elements counts as C order. Requires equal lengths.
LayoutMap layout_of(const Extents& shape, const Extents& strides_bytes);

// ---- Halo: the points around the domain of a computation. ----

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
constexpr Halo no_halo(int ndim) { return Halo(ndim, HaloWidth{}); }

/// Whether the pair is two widths >= 0 whose sum is at most `extent`.
constexpr bool fits(HaloWidth width, std::int64_t extent) noexcept {
  return width.lower >= 0 && width.upper >= 0 && width.lower <= extent &&
         width.upper <= extent - width.lower;
}

/// Whether `halo` has one pair per extent and each pair fits.
constexpr bool fits(const Halo& halo, const Extents& shape) noexcept {
  if (halo.size() != shape.size()) return false;
  for (int axis = 0; axis < shape.size(); ++axis) {
    if (!fits(halo[axis], shape[axis])) return false;
  }
  return true;
}

/// OK if fits(halo, shape), else InvalidArgument with dimension, pair and bound.
absl::Status validate_halo(const Halo& halo, const Extents& shape);

/// The lower halo of each dimension: the first domain point, and the default of the aligned index.
/// A lower halo that leaves no point (lower = extent > 0) gives the last index, because an aligned
/// index must be an index. Requires validate_halo(halo, shape).
constexpr Extents first_domain_index(const Halo& halo, const Extents& shape) {
  Extents index;
  for (int axis = 0; axis < halo.size(); ++axis) {
    const std::int64_t last = shape[axis] > 0 ? shape[axis] - 1 : 0;
    index.push_back(halo[axis].lower < last ? halo[axis].lower : last);
  }
  return index;
}

/// The halo of a slice: how many points at each end of the slice are halo points of the source. The
/// source dimension has `extent` points and `halo`; the slice has `points` points, and its point k
/// is source point start + step * k. Requires step != 0, and each start + step * k in [0, extent).
constexpr HaloWidth halo_of_slice(HaloWidth halo, std::int64_t extent, std::int64_t start,
                                  std::int64_t step, std::int64_t points) noexcept {
  if (step < 0) {  // Count from the opposite end.
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

// ---- Strided memory. Its operations are in gridbuf.layout.view. ----

/// An array in a block of bytes. A value without invariants. The functions below require a *sound*
/// view: it has as many strides as extents, and `byte_hull` returns a value. Check every view from
/// outside gridbuf in this way.
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
/// block. Nothing if an offset or the length does not fit in 64 bits, or if the view is malformed.
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

// ---- Requests and layouts. ----

/// The largest alignment of a request.
using checked::kMaxAlignmentBytes;

/// The parameters of a layout. `gridbuf::join` (gridbuf.layout.view) makes a request from several
/// fields.
struct LayoutRequest {
  Extents shape = {};                // Elements, each >= 0.
  std::int64_t itemsize_bytes = 1;   // >= 0
  LayoutMap layout = {};             // A rank per dimension; empty = C order.
  std::int64_t alignment_bytes = 1;  // 1 .. kMaxAlignmentBytes, any integer; 1 = no constraint.
  Extents aligned_index = {};        // Elements, each in [0, extent); empty = zeros.
  Dims dims = {};                    // Empty = not named.
  Halo halo = {};                    // Empty = none.
  std::string_view dtype_name = {};  // Only for messages.

  friend constexpr bool operator==(const LayoutRequest&, const LayoutRequest&) noexcept = default;
};

/// Why a request cannot have a layout. `axis` is the wrong dimension, or -1.
struct LayoutFault {
  /// The wrong part of the request.
  enum class Kind {
    kNone,
    kItemsize,
    kAlignment,
    kExtent,
    kLayoutMap,
    kAlignedIndexLength,
    kAlignedIndex,
    kDims,
    kHalo,
    kOverflow,
  };
  Kind kind = Kind::kNone;
  int axis = -1;

  constexpr bool ok() const noexcept { return kind == Kind::kNone; }
  friend constexpr bool operator==(const LayoutFault&, const LayoutFault&) noexcept = default;
};

class Layout;

/// One line: "shape (3, 4, 5), itemsize 8 bytes, layout (2, 0, 1), strides ...". It contains names
/// and halo only if the layout has them.
std::string to_string(const Layout& layout);

/// Where the elements of an array are, and what its dimensions mean. `make_plan` makes a layout
/// from a request; gridbuf.layout.view makes views of layouts. Equality compares all members. The
/// default is the layout of one element of one byte.
class Layout {
 public:
  constexpr Layout() noexcept = default;

  /// The layout of existing memory: a view, or an array of another library. row_padding() is 0.
  /// Requires a sound view. Each list must be empty or have one valid entry per dimension.
  constexpr Layout(const StridedView& memory, const LayoutMap& layout, std::int64_t alignment_bytes,
                   const Extents& aligned_index, const Dims& dims, const Halo& halo);
  /// The same memory with other names and another halo, which must fit; `with_meaning` checks.
  constexpr Layout(const Layout& layout, const Dims& dims, const Halo& halo)
      : Layout(layout) {
    dims_ = dims;
    halo_ = halo;
  }

  constexpr int ndim() const noexcept { return view_.ndim(); }
  constexpr const Extents& shape() const noexcept { return view_.shape; }
  constexpr std::int64_t itemsize_bytes() const noexcept { return view_.itemsize_bytes; }
  constexpr const LayoutMap& layout() const noexcept { return layout_; }
  /// The alignment of the element at aligned_index().
  constexpr std::int64_t alignment_bytes() const noexcept { return alignment_bytes_; }
  constexpr const Extents& aligned_index() const noexcept { return aligned_index_; }
  /// Empty if the dimensions are not named.
  constexpr const Dims& dims() const noexcept { return dims_; }
  /// Empty if the layout does not have a halo.
  constexpr const Halo& halo() const noexcept { return halo_; }

  /// Bytes from an element to the next one, per dimension; >= 0 unless it is a view. An extent of 0
  /// counts as 1 here.
  constexpr const Extents& strides_bytes() const noexcept { return view_.strides_bytes; }
  /// The elements of padding behind each row; 0 for a view.
  constexpr std::int64_t row_padding() const noexcept { return row_padding_; }
  /// The shape with the contiguous extent rounded up; for a view, its shape.
  constexpr Extents padded_shape() const {
    Extents padded = shape();
    if (row_padding_ != 0) padded[contiguous_axis()] += row_padding_;
    return padded;
  }
  /// The number of elements, without padding.
  constexpr std::int64_t element_count() const noexcept { return element_count_; }
  /// The bytes of the elements, without padding.
  constexpr std::int64_t nbytes() const noexcept { return nbytes_; }
  /// The bytes from the first to the last byte of the padded array.
  constexpr std::int64_t total_bytes() const noexcept { return total_bytes_; }
  /// The offset of the element at aligned_index(). The offset of element (0, ..., 0) is 0 unless it
  /// is a view.
  constexpr std::int64_t aligned_offset_bytes() const noexcept { return aligned_offset_bytes_; }

  /// The dimension with the largest rank, or -1 for a layout without dimensions.
  constexpr int contiguous_axis() const noexcept {
    for (int axis = 0; axis < ndim(); ++axis) {
      if (layout_[axis] == ndim() - 1) return axis;
    }
    return -1;
  }

  /// The elements; the padding is outside.
  constexpr const StridedView& view() const noexcept { return view_; }

  friend constexpr bool operator==(const Layout&, const Layout&) noexcept = default;
  friend std::ostream& operator<<(std::ostream& stream, const Layout& layout) {
    return stream << to_string(layout);
  }
  friend constexpr LayoutFault plan_layout(const LayoutRequest& request, Layout& layout);

 private:
  constexpr LayoutFault take(const LayoutRequest& request);
  constexpr LayoutFault take_aligned_index(const Extents& aligned_index);
  constexpr LayoutFault take_meaning(const LayoutRequest& request);
  constexpr LayoutFault pad(const Axes& axis_of_rank) noexcept;
  constexpr LayoutFault lay_out();

  StridedView view_;
  Extents aligned_index_;
  LayoutMap layout_;
  Dims dims_;
  Halo halo_;
  std::int64_t row_padding_ = 0;
  std::int64_t alignment_bytes_ = 1;
  std::int64_t element_count_ = 1;
  std::int64_t nbytes_ = 1;
  std::int64_t total_bytes_ = 1;
  std::int64_t aligned_offset_bytes_ = 0;
};

/// The layout of `request`. InvalidArgument names the wrong value, its bound and what to do; for an
/// overflow it names shape, item type and limit.
absl::StatusOr<Layout> make_plan(const LayoutRequest& request);

/// The same memory with other names and another halo. Empty `dims` are the default names, an empty
/// `halo` is (0, 0) for each dimension. The alignment stays. InvalidArgument if names or halo do
/// not fit.
absl::StatusOr<Layout> with_meaning(const Layout& layout, const Dims& dims = {},
                                    const Halo& halo = {});

/// The rule of offsets: "offset(i0, i1, i2) = 8*i0 + 120*i1 + 24*i2 bytes".
std::string offset_rule(const Layout& layout);

/// The differences, one line for each property: "layout: wanted (0, 1), found (1, 0)"; "" if equal.
/// Does not compare names and halo.
std::string difference(const Layout& wanted, const Layout& found);

// ---- The arithmetic of layouts, constexpr. ----

/// Copies and checks the parameters. `lay_out` checks the sizes.
constexpr LayoutFault Layout::take(const LayoutRequest& request) {
  using enum LayoutFault::Kind;
  if (request.itemsize_bytes < 0) return {kItemsize};
  if (request.alignment_bytes < 1 || request.alignment_bytes > kMaxAlignmentBytes) {
    return {kAlignment};
  }
  for (int axis = 0; axis < request.shape.size(); ++axis) {
    if (request.shape[axis] < 0) return {kExtent, axis};
  }
  view_.shape = request.shape;
  view_.offset_bytes = 0;
  view_.itemsize_bytes = request.itemsize_bytes;
  alignment_bytes_ = request.alignment_bytes;
  if (request.layout.empty()) {
    layout_ = c_order(ndim());
  } else {
    layout_ = request.layout;
    if (layout_.size() != ndim() || !is_permutation(layout_)) return {kLayoutMap};
  }
  if (const LayoutFault fault = take_aligned_index(request.aligned_index); !fault.ok()) {
    return fault;
  }
  return take_meaning(request);
}

constexpr LayoutFault Layout::take_aligned_index(const Extents& aligned_index) {
  using enum LayoutFault::Kind;
  if (aligned_index.empty()) {
    aligned_index_ = Extents(ndim(), 0);
    return {};
  }
  if (aligned_index.size() != ndim()) return {kAlignedIndexLength};
  for (int axis = 0; axis < ndim(); ++axis) {
    const std::int64_t position = aligned_index[axis];
    if (position < 0 || (position > 0 && position >= shape()[axis])) return {kAlignedIndex, axis};
  }
  aligned_index_ = aligned_index;
  return {};
}

constexpr LayoutFault Layout::take_meaning(const LayoutRequest& request) {
  using enum LayoutFault::Kind;
  if (!request.dims.empty() && !are_names_of(request.dims, ndim())) return {kDims};
  if (!request.halo.empty() && !fits(request.halo, shape())) return {kHalo};
  dims_ = request.dims;
  halo_ = request.halo;
  return {};
}

/// Rounds the contiguous extent up, so that every row is a whole number of alignments.
constexpr LayoutFault Layout::pad(const Axes& axis_of_rank) noexcept {
  row_padding_ = 0;
  if (ndim() <= 1 || alignment_bytes_ == 1) return {};
  const int axis = axis_of_rank[ndim() - 1];
  const std::optional<std::int64_t> padded = checked::align_up(
      shape()[axis], checked::padding_multiple(alignment_bytes_, itemsize_bytes()));
  if (!padded) return {LayoutFault::Kind::kOverflow};
  row_padding_ = *padded - shape()[axis];
  return {};
}

/// Computes all sizes. Multiplies in the order of memory, smallest stride first, so that an
/// overflow anywhere is an overflow of the total. An extent of 0 counts as 1: the other extents
/// must fit, too, because strides are products of them.
constexpr LayoutFault Layout::lay_out() {
  constexpr LayoutFault kTooLarge{LayoutFault::Kind::kOverflow};
  const Axes axis_of_rank = axes_by_rank(layout_);
  if (const LayoutFault fault = pad(axis_of_rank); !fault.ok()) return fault;
  view_.strides_bytes = Extents(ndim(), 0);
  std::int64_t stride_bytes = itemsize_bytes();
  std::int64_t aligned_offset_bytes = 0;
  std::int64_t count = 1;
  bool any_zero = false;
  for (int rank = ndim() - 1; rank >= 0; --rank) {
    const int axis = axis_of_rank[rank];
    const std::int64_t extent = shape()[axis];
    const std::int64_t padded_extent = rank == ndim() - 1 ? extent + row_padding_ : extent;
    any_zero = any_zero || extent == 0;
    const auto next = checked::mul(stride_bytes, padded_extent == 0 ? 1 : padded_extent);
    const auto next_count = checked::mul(count, extent == 0 ? 1 : extent);
    if (!next || !next_count) return kTooLarge;
    view_.strides_bytes[axis] = stride_bytes;
    aligned_offset_bytes += aligned_index_[axis] * stride_bytes;  // Less than the total.
    stride_bytes = *next;
    count = *next_count;
  }
  element_count_ = any_zero ? 0 : count;
  nbytes_ = element_count_ * itemsize_bytes();  // At most the total.
  total_bytes_ = any_zero ? 0 : stride_bytes;
  aligned_offset_bytes_ = aligned_offset_bytes;
  return {};
}

constexpr Layout::Layout(const StridedView& memory, const LayoutMap& layout,
                         std::int64_t alignment_bytes, const Extents& aligned_index,
                         const Dims& dims, const Halo& halo)
    : view_(memory),
      aligned_index_(aligned_index),
      layout_(layout),
      dims_(dims),
      halo_(halo),
      alignment_bytes_(alignment_bytes) {
  // A broadcast view may have more than 2^63 - 1 elements: then both numbers are the limit.
  element_count_ = checked::product(shape().span()).value_or(checked::kMaxBytes);
  nbytes_ = checked::mul(element_count_, itemsize_bytes()).value_or(checked::kMaxBytes);
  total_bytes_ = byte_hull(memory).value_or(checked::ByteHull{}).length_bytes();
  aligned_offset_bytes_ =
      is_empty(shape()) ? memory.offset_bytes : byte_offset(memory, aligned_index_);
}

/// The arithmetic of `make_plan`: writes the layout to `layout`, or returns the first fault and
/// leaves `layout` valid but unspecified.
constexpr LayoutFault plan_layout(const LayoutRequest& request, Layout& layout) {
  const LayoutFault fault = layout.take(request);
  return fault.ok() ? layout.lay_out() : fault;
}

// ---- Presets: device, alignment and order of dimensions for a backend, by name. ----

/// How a preset orders the dimensions.
struct PresetOrder {
  /// The rule of an order.
  enum class Kind {
    kByName,       // By the base ranks of I, J and K.
    kRowMajor,     // By position: the last dimension is contiguous.
    kColumnMajor,  // By position: the first dimension is contiguous.
  };
  Kind kind = Kind::kByName;
  std::array<int, kSpatialAxes> base_ranks = {0, 1, 2};  // Of I, J, K; used by kByName.

  static constexpr PresetOrder by_name(int rank_i, int rank_j, int rank_k) noexcept {
    return {Kind::kByName, {rank_i, rank_j, rank_k}};
  }
  static constexpr PresetOrder row_major() noexcept { return {Kind::kRowMajor, {0, 1, 2}}; }
  static constexpr PresetOrder column_major() noexcept { return {Kind::kColumnMajor, {0, 1, 2}}; }

  friend constexpr bool operator==(const PresetOrder&, const PresetOrder&) noexcept = default;
};

/// The parameters that a preset sets.
struct Preset {
  DeviceType device = DeviceType::kHost;  // kCuda: a GPU
  std::int64_t alignment_bytes = 1;
  PresetOrder order = {};

  friend constexpr bool operator==(const Preset&, const Preset&) noexcept = default;
};

/// The layout map of an array with these dimensions, from the base ranks of I, J and K. Requires
/// that `base_ranks` is a permutation of 0, 1, 2 and that the names are distinct.
LayoutMap layout_by_name(const std::array<int, kSpatialAxes>& base_ranks,
                         const Dims& dims);

/// The layout map that `preset` gives to an array with these dimensions.
LayoutMap preset_layout(const Preset& preset, const Dims& dims);

/// The preset of that name, or InvalidArgument that lists close matches and all names.
absl::StatusOr<Preset> find_preset(std::string_view name);

/// Makes `preset` known under `name`. InvalidArgument for an empty name, an alignment outside
/// 1 .. 2^20, base ranks that are not a permutation of 0, 1, 2, or a name that has another preset.
absl::Status register_preset(std::string_view name, const Preset& preset);

/// All names: built-in names in the order of the documentation, then registered names, sorted.
std::vector<std::string> preset_names();

/// Up to three of `candidates` that resemble `name`, the closest first. A candidate resembles it if
/// few letters differ (ignoring case), or if one text contains the second.
std::vector<std::string> close_matches(std::string_view name,
                                       const std::vector<std::string>& candidates);

// ---- A layout as text. ----

/// The size of a drawing, and the names and halo of its dimensions.
struct DrawOptions {
  Dims dims = {};        // Empty = default names.
  Halo halo = {};        // Empty = none.
  int max_columns = 24;  // Cells per row, >= 1.
  int max_rows = 32;     // Rows, >= 1.
};

/// A drawing: the layout in one line, the meaning of a row, the rows of memory, and a key. Each row
/// has its byte offset, the indices of the other dimensions and a mark per cell: `o` element, `h`
/// halo, `.` padding, and `A` (`a` in the halo) for an element whose address is a multiple of the
/// alignment. Ignores names or a halo that do not fit the layout.
std::string draw(const Layout& layout, const DrawOptions& options = {});

}  // namespace gridbuf
