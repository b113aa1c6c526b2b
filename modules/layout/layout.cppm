// gridbuf.layout: from a request (shape, item size, layout map, alignment) to a layout plan.
//
// Purpose. A `LayoutPlan` says where every element of an array lies before there is any memory:
// byte strides, padded shape, total bytes, and which element must be aligned. Allocation, copying
// and exporting all read it; none of them computes a size of its own. This module is arithmetic
// only.
//
// Key choice. Padding follows the lcm rule: with more than one dimension, the extent of the
// contiguous one is rounded up to a multiple of alignment / gcd(alignment, itemsize) elements, so a
// row is a whole number of alignments whatever the item size; there is no divisibility error. Hence
// the property that users buy: *every element whose index in the contiguous dimension equals the
// aligned index's is aligned, whatever its other indices*. The plan promises offsets and the
// allocator promises one address: (block + aligned_offset_bytes()) % alignment_bytes() == 0.
// Keeping the two apart is why a plan is a plain value that can be compared, printed and made at
// compile time.
//
// The same request gives the same plan on every machine. All arithmetic is 64-bit and checked; what
// does not fit is an error that names shape, item type and limit, and never a wrapped size.
//
// Cost. The arithmetic (`plan_layout`) is constexpr, allocates nothing and writes only live
// entries; texts are made only for errors.

module;

#include <cstdint>
#include <optional>
#include <ostream>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

export module gridbuf.layout;

export import gridbuf.layout.dims;
export import gridbuf.layout.extents;
export import gridbuf.layout.halo;
export import gridbuf.layout.view;

export namespace gridbuf {

/// The largest alignment that can be asked for.
using checked::kMaxAlignmentBytes;

/// What a user wants.
struct PlanRequest {
  Extents shape = {};                // Elements, each >= 0.
  std::int64_t itemsize_bytes = 1;   // >= 0
  LayoutMap layout = {};             // A rank per dimension; empty = C order.
  std::int64_t alignment_bytes = 1;  // 1 .. kMaxAlignmentBytes, any integer; 1 = no constraint.
  Extents aligned_index = {};        // Elements, each in [0, extent); empty = zeros.
  std::string_view dtype_name = {};  // Only for messages.
};

/// Why a request has no plan. `axis` is the dimension at fault where there is one.
struct PlanFault {
  enum class Kind {
    kNone,
    kItemsize,
    kAlignment,
    kExtent,
    kLayoutMap,
    kAlignedIndexLength,
    kAlignedIndex,
    kOverflow,
  };
  Kind kind = Kind::kNone;
  int axis = -1;

  constexpr bool ok() const noexcept { return kind == Kind::kNone; }
  friend constexpr bool operator==(const PlanFault&, const PlanFault&) noexcept = default;
};

class LayoutPlan;

/// One line: "LayoutPlan(shape (3, 4, 5), itemsize 8 bytes, layout (2, 0, 1), ...)".
std::string to_string(const LayoutPlan& plan);

/// Where the elements of an array lie, relative to its element (0, ..., 0). Two plans are equal if
/// all of this is equal. The default is the plan of one element of one byte.
class LayoutPlan {
 public:
  // Not defaulted, because `LayoutPlan{}` would then write zeros to all the entries first.
  constexpr LayoutPlan() noexcept {}

  constexpr int ndim() const noexcept { return shape_.size(); }
  constexpr const Extents& shape() const noexcept { return shape_; }
  constexpr std::int64_t itemsize_bytes() const noexcept { return itemsize_bytes_; }
  constexpr const LayoutMap& layout() const noexcept { return layout_; }
  constexpr std::int64_t alignment_bytes() const noexcept { return alignment_bytes_; }
  constexpr const Extents& aligned_index() const noexcept { return aligned_index_; }

  /// Bytes from an element to the next one, per dimension; >= 0. An extent of 0 counts as 1 here.
  constexpr const Extents& strides_bytes() const noexcept { return strides_bytes_; }
  /// The shape with the contiguous extent rounded up.
  constexpr const Extents& padded_shape() const noexcept { return padded_shape_; }
  /// The number of elements, without padding.
  constexpr std::int64_t element_count() const noexcept { return element_count_; }
  /// The bytes of the elements, without padding.
  constexpr std::int64_t nbytes() const noexcept { return nbytes_; }
  /// The bytes from element (0, ..., 0) to the end of the padded array; 0 if it has no elements.
  constexpr std::int64_t total_bytes() const noexcept { return total_bytes_; }
  /// The offset of the element at aligned_index(): the sum of index * stride.
  constexpr std::int64_t aligned_offset_bytes() const noexcept { return aligned_offset_bytes_; }

  /// The dimension of the largest rank, or -1 for a plan without dimensions.
  constexpr int contiguous_axis() const noexcept {
    for (int axis = 0; axis < ndim(); ++axis) {
      if (layout_[axis] == ndim() - 1) return axis;
    }
    return -1;
  }

  /// The elements as a view; the padding is outside it. Offset 0 is element (0, ..., 0).
  constexpr StridedView view() const noexcept {
    return StridedView{shape_, strides_bytes_, 0, itemsize_bytes_};
  }
  /// Elements and padding as a view, for the few that may touch padding.
  constexpr StridedView padded_view() const noexcept {
    return StridedView{padded_shape_, strides_bytes_, 0, itemsize_bytes_};
  }

  friend constexpr bool operator==(const LayoutPlan&, const LayoutPlan&) noexcept = default;
  friend std::ostream& operator<<(std::ostream& stream, const LayoutPlan& plan) {
    return stream << to_string(plan);
  }
  friend constexpr PlanFault plan_layout(const PlanRequest& request, LayoutPlan& plan) noexcept;

 private:
  constexpr PlanFault take(const PlanRequest& request) noexcept;
  constexpr PlanFault take_aligned_index(const Extents& aligned_index) noexcept;
  constexpr PlanFault pad(const Axes& axis_of_rank) noexcept;
  constexpr PlanFault lay_out() noexcept;

  Extents shape_;
  Extents strides_bytes_;
  Extents padded_shape_;
  Extents aligned_index_;
  LayoutMap layout_;
  std::int64_t itemsize_bytes_ = 1;
  std::int64_t alignment_bytes_ = 1;
  std::int64_t element_count_ = 1;
  std::int64_t nbytes_ = 1;
  std::int64_t total_bytes_ = 1;
  std::int64_t aligned_offset_bytes_ = 0;
};

/// The plan of `request`, or InvalidArgument that holds the value at fault, its bound and what to
/// do (overflow: shape, item type and limit).
absl::StatusOr<LayoutPlan> make_plan(const PlanRequest& request);

/// The rule of offsets: "offset(i0, i1, i2) = 8*i0 + 120*i1 + 24*i2 bytes".
std::string offset_rule(const LayoutPlan& plan);

/// What differs, a line for each property: "layout: wanted (0, 1), found (1, 0)"; "" if equal.
std::string difference(const LayoutPlan& wanted, const LayoutPlan& found);

// ---- The arithmetic, constexpr. ----

/// Copies and checks what is asked for, but for sizes.
constexpr PlanFault LayoutPlan::take(const PlanRequest& request) noexcept {
  using enum PlanFault::Kind;
  if (request.itemsize_bytes < 0) return {kItemsize};
  if (request.alignment_bytes < 1 || request.alignment_bytes > kMaxAlignmentBytes) {
    return {kAlignment};
  }
  for (int axis = 0; axis < request.shape.size(); ++axis) {
    if (request.shape[axis] < 0) return {kExtent, axis};
  }
  shape_ = request.shape;
  itemsize_bytes_ = request.itemsize_bytes;
  alignment_bytes_ = request.alignment_bytes;
  if (request.layout.empty()) {
    layout_ = c_order(ndim());
  } else {
    layout_ = request.layout;
    if (layout_.size() != ndim() || !is_permutation(layout_)) return {kLayoutMap};
  }
  return take_aligned_index(request.aligned_index);
}

constexpr PlanFault LayoutPlan::take_aligned_index(const Extents& aligned_index) noexcept {
  using enum PlanFault::Kind;
  if (aligned_index.empty()) {
    aligned_index_ = Extents(ndim(), 0);
    return {};
  }
  if (aligned_index.size() != ndim()) return {kAlignedIndexLength};
  for (int axis = 0; axis < ndim(); ++axis) {
    const std::int64_t position = aligned_index[axis];
    if (position < 0 || (position > 0 && position >= shape_[axis])) return {kAlignedIndex, axis};
  }
  aligned_index_ = aligned_index;
  return {};
}

/// Rounds the contiguous extent up, so that every row is a whole number of alignments.
constexpr PlanFault LayoutPlan::pad(const Axes& axis_of_rank) noexcept {
  padded_shape_ = shape_;
  if (ndim() <= 1 || alignment_bytes_ == 1) return {};
  const int axis = axis_of_rank[ndim() - 1];
  const std::optional<std::int64_t> padded =
      checked::align_up(shape_[axis], checked::padding_multiple(alignment_bytes_, itemsize_bytes_));
  if (!padded) return {PlanFault::Kind::kOverflow};
  padded_shape_[axis] = *padded;
  return {};
}

/// Computes all sizes. The order of multiplications is that of memory, smallest stride first, so
/// that an overflow anywhere is an overflow of the total. An extent of 0 counts as 1: the others
/// must fit all the same, because strides are made of them.
constexpr PlanFault LayoutPlan::lay_out() noexcept {
  constexpr PlanFault kTooLarge{PlanFault::Kind::kOverflow};
  const Axes axis_of_rank = axes_by_rank(layout_);
  if (const PlanFault fault = pad(axis_of_rank); !fault.ok()) return fault;
  strides_bytes_ = Extents(ndim(), 0);
  std::int64_t stride_bytes = itemsize_bytes_;
  std::int64_t aligned_offset_bytes = 0;
  std::int64_t count = 1;
  bool any_zero = false;
  for (int rank = ndim() - 1; rank >= 0; --rank) {
    const int axis = axis_of_rank[rank];
    const std::int64_t extent = shape_[axis];
    const std::int64_t padded_extent = padded_shape_[axis];
    any_zero = any_zero || extent == 0;
    const auto next = checked::mul(stride_bytes, padded_extent == 0 ? 1 : padded_extent);
    const auto next_count = checked::mul(count, extent == 0 ? 1 : extent);
    if (!next || !next_count) return kTooLarge;
    strides_bytes_[axis] = stride_bytes;
    aligned_offset_bytes += aligned_index_[axis] * stride_bytes;  // Less than the total.
    stride_bytes = *next;
    count = *next_count;
  }
  element_count_ = any_zero ? 0 : count;
  nbytes_ = element_count_ * itemsize_bytes_;  // At most the total.
  total_bytes_ = any_zero ? 0 : stride_bytes;
  aligned_offset_bytes_ = aligned_offset_bytes;
  return {};
}

/// The arithmetic of `make_plan`: writes the plan to `plan` and returns no fault, or returns the
/// first fault and leaves `plan` valid but unspecified.
constexpr PlanFault plan_layout(const PlanRequest& request, LayoutPlan& plan) noexcept {
  const PlanFault fault = plan.take(request);
  return fault.ok() ? plan.lay_out() : fault;
}

/// The plan of a request that is known at compile time; one without a plan does not compile.
consteval LayoutPlan static_plan(const PlanRequest& request) {
  LayoutPlan plan;
  if (!plan_layout(request, plan).ok()) __builtin_trap();  // Not a constant expression.
  return plan;
}

}  // namespace gridbuf
