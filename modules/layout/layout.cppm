// gridbuf.layout: where the elements of an array are, before there is any memory.
//
// `make_plan` turns a `LayoutRequest` (shape, item size, layout map, alignment, aligned index,
// names, halo) into a `Layout`: byte strides, padded shape, sizes, and which element is aligned.
// Allocation, copies and exports read it, and none of them computes a size. This library is
// arithmetic only: no memory of arrays, no files, no Python. Nearly all of it is constexpr. On the
// heap are texts of errors and lists of more than eight dimensions.
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
// A halo is a (lower, upper) pair per dimension. It never changes the shape; it only gives the
// default of the aligned index.
//
// A request gives the same layout on every machine. All functions are safe on any thread.

module;

#include <array>
#include <compare>
#include <cstdint>
#include <limits>
#include <optional>
#include <ostream>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

export module gridbuf.layout;

export import gridbuf.base;
export import gridbuf.layout.dims;
export import gridbuf.layout.sizes;

export namespace gridbuf {

/// A layout map: entry i is the *rank* of dimension i, 0 for the largest stride and ndim - 1 for
/// the smallest. The inverse permutation is `axes_by_rank`.
using LayoutMap = SmallVec<int>;

/// A list of dimensions, by position, such as the argument of `transpose`.
using Axes = SmallVec<int>;

/// The values as an `Extents`. InvalidArgument for more than kMaxNdim values; it names `what`
/// ("shape", "strides", ...), the number of entries and the bound.
absl::StatusOr<Extents> make_extents(std::span<const std::int64_t> values, std::string_view what);

// ---- Layout maps. ----

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

  /// At the lower end (0), or at the upper end (1).
  constexpr std::int64_t& at(int end) noexcept { return end == 0 ? lower : upper; }
  constexpr std::int64_t at(int end) const noexcept { return end == 0 ? lower : upper; }

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

/// The aligned index when none is given: the first domain point, or zeros without a halo.
constexpr Extents default_aligned_index(const Halo& halo, const Extents& shape) {
  return halo.empty() ? Extents(shape.size(), 0) : first_domain_index(halo, shape);
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
  Extents aligned_index = {};        // Each in [0, extent); empty = the default.
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
  // Not defaulted: `Layout{}` would first set all entries of all lists to zero.
  constexpr Layout() noexcept {}

  /// The layout of existing memory: a view, or an array of another library. row_padding() is 0.
  /// Requires a sound view. Each list must be empty or have one valid entry per dimension.
  constexpr Layout(const StridedView& memory, const LayoutMap& layout, std::int64_t alignment_bytes,
                   const Extents& aligned_index, const Dims& dims, const Halo& halo);
  /// The same, of lists that `parts` makes in their places: parts.view(), parts.layout_map(), … and
  /// parts.alignment_bytes(layout), asked last.
  template <class Parts>
  explicit constexpr Layout(const Parts& parts)
      : view_(parts.view()),
        aligned_index_(parts.aligned_index()),
        layout_map_(parts.layout_map()),
        dims_(parts.dims()),
        halo_(parts.halo()) {
    alignment_bytes_ = parts.alignment_bytes(*this);
    measure();
  }
  /// The same memory with other names and another halo, which must fit; `with_meaning` checks.
  constexpr Layout(const Layout& layout, const Dims& dims, const Halo& halo)
      : view_(layout.view_),
        aligned_index_(layout.aligned_index_),
        layout_map_(layout.layout_map_),
        dims_(dims),
        halo_(halo),
        row_padding_(layout.row_padding_),
        alignment_bytes_(layout.alignment_bytes_),
        element_count_(layout.element_count_),
        nbytes_(layout.nbytes_),
        total_bytes_(layout.total_bytes_),
        aligned_offset_bytes_(layout.aligned_offset_bytes_) {}

  constexpr int ndim() const noexcept { return view_.ndim(); }
  constexpr const Extents& shape() const noexcept { return view_.shape; }
  constexpr std::int64_t itemsize_bytes() const noexcept { return view_.itemsize_bytes; }
  constexpr const LayoutMap& layout_map() const noexcept { return layout_map_; }
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
      if (layout_map_[axis] == ndim() - 1) return axis;
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
  constexpr void measure();

  StridedView view_;
  Extents aligned_index_;
  LayoutMap layout_map_;
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
    layout_map_ = c_order(ndim());
  } else {
    layout_map_ = request.layout;
    if (layout_map_.size() != ndim() || !is_permutation(layout_map_)) return {kLayoutMap};
  }
  if (const LayoutFault fault = take_meaning(request); !fault.ok()) return fault;
  return take_aligned_index(request.aligned_index);
}

constexpr LayoutFault Layout::take_aligned_index(const Extents& aligned_index) {
  using enum LayoutFault::Kind;
  if (aligned_index.empty()) {
    aligned_index_ = default_aligned_index(halo_, shape());
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
  const Axes axis_of_rank = axes_by_rank(layout_map_);
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
      layout_map_(layout),
      dims_(dims),
      halo_(halo),
      alignment_bytes_(alignment_bytes) {
  measure();
}

constexpr void Layout::measure() {
  // A broadcast view may have more than 2^63 - 1 elements: then both numbers are the limit.
  element_count_ = checked::product(shape().span()).value_or(checked::kMaxBytes);
  nbytes_ = gridbuf::nbytes(view_);
  total_bytes_ = byte_hull(view_).value_or(checked::ByteHull{}).length_bytes();
  aligned_offset_bytes_ =
      is_empty(shape()) ? view_.offset_bytes : byte_offset(view_, aligned_index_);
}

/// The arithmetic of `make_plan`: writes the layout to `layout`, or returns the first fault and
/// leaves `layout` valid but unspecified.
constexpr LayoutFault plan_layout(const LayoutRequest& request, Layout& layout) {
  const LayoutFault fault = layout.take(request);
  return fault.ok() ? layout.lay_out() : fault;
}

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
