// Casts and masked copies: views cut into boxes, and what is done with a box.

module;

#include <algorithm>
#include <array>
#include <atomic>
#include <cfenv>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

module gridbuf.transfer;

import gridbuf.alloc;
import gridbuf.base;
import gridbuf.layout;
import gridbuf.layout.view;
import gridbuf.transfer.loops;

namespace gridbuf {
namespace {

using loops::copy_view;
using loops::magnitude;
using shared::keep;
using shared::Kept;

// --- Checks --------------------------------------------------------------------------------------

absl::Status check_view(std::string_view role, const std::byte* block, const StridedView& view,
                        const Extents& shape, std::int64_t itemsize_bytes) {
  if (view.shape != shape) {
    return make_error(ErrorClass::kValue,
                      {std::string(role).append("'s shape"), to_string(view.shape),
                       "the target's, " + to_string(shape), "broadcast it first"});
  }
  if (view.itemsize_bytes != itemsize_bytes) {
    return make_error(ErrorClass::kValue, {std::string(role).append("'s itemsize_bytes"),
                                           std::to_string(view.itemsize_bytes),
                                           std::to_string(itemsize_bytes) + ", its type's",
                                           "pass the type of the elements that the view has"});
  }
  if (!checked::product(shape.span())) {
    return make_error(ErrorClass::kValue, {"the number of elements", "beyond 64 bits",
                                           "at most 2^63 - 1", "pass a smaller part"});
  }
  return shared::hull_of(role, block, view).status();
}

// --- Boxes ---------------------------------------------------------------------------------------

// What a box of one of the views takes at most; longer elements are boxes by themselves.
constexpr std::int64_t kBoxBytes = std::int64_t{1} << 16;
constexpr std::int64_t kBoxElements = std::int64_t{1} << 13;
using Scratch = std::array<std::byte, kBoxBytes>;

// Rows of a box should be several lines long in the target and in the source.
constexpr std::int64_t kBoxRowBytes = 4 * loops::kLineBytes;

// Where threads and stores past the caches begin to pay is the same as for copies.
constexpr loops::CopyLimits kLimits;
constexpr loops::CopyLimits kStreamed{.stream_bytes = 0, .stream_rows_bytes = 0};

// How views of one shape are cut into boxes: the same indices of all views. The boxes are numbered,
// and each is walked, as the target is laid out; in the order of the index if elements of the
// target share bytes.
class Boxes {
 public:
  Boxes(const StridedView& target, const StridedView& source)
      : in_order_(loops::may_overlap_itself(target)) {
    for (int axis = 0; axis < target.ndim(); ++axis) {
      if (target.shape[axis] != 1) axes_.push_back(axis);
    }
    const auto stride_of = [](const StridedView& view, int axis) {
      return magnitude(view.strides_bytes[axis]);
    };
    if (!in_order_) {
      std::sort(axes_.begin(), axes_.end(),
                [&](int a, int b) { return stride_of(target, a) > stride_of(target, b); });
    }
    for (const int axis : axes_) {
      extents_.push_back(target.shape[axis]);
      turned_.push_back(!in_order_ && target.strides_bytes[axis] < 0);
    }
    choose_shape(target, source);
    for (int i = 0; i < axes_.size(); ++i) {
      counts_.push_back((extents_[i] - 1) / box_[i] + 1);
      total_ *= counts_[i];
    }
  }

  bool in_order() const { return in_order_; }
  std::int64_t total() const { return total_; }
  std::int64_t elements_of_a_box() const {
    std::int64_t elements = 1;
    for (const std::int64_t extent : box_) elements *= extent;
    return elements;
  }

  // A view's part in a box.
  StridedView part(const StridedView& view, std::int64_t number) const {
    const int ndim = axes_.size();
    StridedView part{.shape = Extents(ndim, 0),
                     .strides_bytes = Extents(ndim, 0),
                     .offset_bytes = view.offset_bytes,
                     .itemsize_bytes = view.itemsize_bytes};
    for (int i = ndim - 1; i >= 0; --i) {
      const std::int64_t first = number % counts_[i] * box_[i];
      number /= counts_[i];
      std::int64_t stride = view.strides_bytes[axes_[i]];
      if (turned_[i]) {
        part.offset_bytes += (extents_[i] - 1) * stride;
        stride = -stride;
      }
      part.shape[i] = std::min(box_[i], extents_[i] - first);
      part.strides_bytes[i] = stride;
      part.offset_bytes += first * stride;
    }
    return part;
  }

 private:
  void choose_shape(const StridedView& target, const StridedView& source) {
    const int innermost = axes_.size() - 1;
    box_ = Extents(axes_.size(), 1);
    if (innermost < 0) return;
    const std::int64_t itemsize = std::max(target.itemsize_bytes, source.itemsize_bytes);
    std::int64_t room = std::clamp(kBoxBytes / itemsize, std::int64_t{1}, kBoxElements);
    // Parts of an extent are of about one length: no box is a rest of a few elements.
    const auto grow = [&](int axis, std::int64_t most) {
      most = std::clamp(most, std::int64_t{1}, std::min(room, extents_[axis]));
      const std::int64_t parts = (extents_[axis] - 1) / most + 1;
      box_[axis] = (extents_[axis] - 1) / parts + 1;
      room /= box_[axis];
    };
    int nearest = innermost;
    for (int i = 0; i < innermost && !in_order_; ++i) {
      const std::int64_t stride = magnitude(source.strides_bytes[axes_[i]]);
      const std::int64_t least = magnitude(source.strides_bytes[axes_[nearest]]);
      if (stride != 0 && (stride < least || least == 0)) nearest = i;
    }
    // Rows of the target that take one element of each line of the source.
    const bool across = nearest != innermost &&
                        magnitude(source.strides_bytes[axes_[innermost]]) >= loops::kLineBytes;
    if (across) {
      grow(innermost, kBoxRowBytes / target.itemsize_bytes);
      grow(nearest, room);
    }
    // An axis outside one that is cut has no room left: such boxes follow the order of the index.
    for (int i = innermost; i >= 0; --i) {
      if (across && (i == innermost || i == nearest)) continue;
      grow(i, room);
    }
  }

  bool in_order_;
  SmallVec<int> axes_ = {};  // of the views, outermost first; without those of extent 1
  SmallVec<bool> turned_ = {};
  Extents extents_ = {};
  Extents box_ = {};
  Extents counts_ = {};
  std::int64_t total_ = 1;
};

// Calls `work` with ranges of boxes, on all threads if that pays.
template <class Work>
void for_ranges_of(const Boxes& boxes, std::int64_t element_bytes, const Work& work) {
  const std::int64_t box_bytes = boxes.elements_of_a_box() * element_bytes;
  const bool is_short = boxes.total() <= 2 * kLimits.parallel_bytes / box_bytes;
  const std::int64_t chunk = is_short || boxes.in_order()
                                 ? boxes.total()
                                 : std::max<std::int64_t>(1, 2 * kLimits.piece_bytes / box_bytes);
  parallel_for(boxes.total(), chunk, work);
}

// A view's part of a box, packed: where it is if it is packed there, else in `scratch`.
const std::byte* packed_in(Scratch& scratch, const std::byte* block, const StridedView& part,
                           std::int64_t swap_unit_bytes = 1) {
  if (swap_unit_bytes <= 1 && is_c_contiguous(part)) return block + part.offset_bytes;
  copy_view(scratch.data(), *loops::packed(part), block, part, swap_unit_bytes);
  return scratch.data();
}

bool share_bytes(const std::byte* target_block, const StridedView& target, const std::byte* block,
                 const StridedView& view) {
  return loops::overlap(loops::range_of(target_block, target), loops::range_of(block, view));
}

// --- Casts ---------------------------------------------------------------------------------------

// The floating-point environment that programs start with, for as long as this lives: what a number
// becomes must not depend on the caller's rounding mode, or on whether subnormals are flushed.
class DefaultFloats {
 public:
  DefaultFloats() {
    std::fegetenv(&before_);
    std::fesetenv(FE_DFL_ENV);
  }
  ~DefaultFloats() { std::fesetenv(&before_); }
  DefaultFloats(const DefaultFloats&) = delete;
  DefaultFloats& operator=(const DefaultFloats&) = delete;

 private:
  std::fenv_t before_;
};

// One side of a cast; the number type's whole item is the unit whose bytes are swapped.
struct Side {
  const StridedView& view;
  std::int64_t swap_unit_bytes;
};

class CastLoop {
 public:
  CastLoop(const Boxes& boxes, casts::CastRow cast_row, std::byte* target_block, Side target,
           const std::byte* source_block, Side source, bool streams)
      : boxes_(boxes),
        cast_row_(cast_row),
        target_block_(target_block),
        target_(target),
        source_block_(source_block),
        source_(source),
        streams_(streams) {}

  ConversionFlags run(std::int64_t begin, std::int64_t end) {
    ConversionFlags flags;
    for (std::int64_t box = begin; box < end; ++box) flags |= run_box(box);
    return flags;
  }

 private:
  ConversionFlags run_box(std::int64_t box) {
    const StridedView to = boxes_.part(target_.view, box);
    const StridedView from = boxes_.part(source_.view, box);
    const std::byte* const numbers = packed_in(read_, source_block_, from, source_.swap_unit_bytes);
    const std::int64_t count = *checked::product(to.shape.span());
    if (target_.swap_unit_bytes == 1 && is_c_contiguous(to)) {
      std::byte* const run = target_block_ + to.offset_bytes;
      return streams_ ? stream(run, numbers, count) : cast_row_(run, numbers, count);
    }
    const ConversionFlags flags = cast_row_(written_.data(), numbers, count);
    copy_view(target_block_, to, written_.data(), *loops::packed(to), target_.swap_unit_bytes,
              streams_ ? kStreamed : kLimits);
    return flags;
  }

  // A run of the target past the caches, in pieces that the nearest one holds.
  ConversionFlags stream(std::byte* target, const std::byte* numbers, std::int64_t count) {
    constexpr std::int64_t kPieceBytes = 128 * loops::kLineBytes;
    const std::int64_t itemsize = target_.view.itemsize_bytes;
    ConversionFlags flags;
    while (count > 0) {
      // The next piece begins at a line.
      const auto behind_line =
          static_cast<std::int64_t>(reinterpret_cast<std::uintptr_t>(target) %
                                    static_cast<std::uintptr_t>(loops::kLineBytes));
      const std::int64_t length = std::min(count, (kPieceBytes - behind_line) / itemsize);
      flags |= cast_row_(written_.data(), numbers, length);
      stream_rows_({.length_bytes = length * itemsize,
                    .count = 1,
                    .target_step_bytes = 0,
                    .source_step_bytes = 0},
                   target, written_.data());
      target += length * itemsize;
      numbers += length * source_.view.itemsize_bytes;
      count -= length;
    }
    loops::end_stream();
    return flags;
  }

  const Boxes& boxes_;
  const casts::CastRow cast_row_;
  const loops::MoveDenseRows stream_rows_ = loops::stream_rows_with(simd());
  std::byte* const target_block_;
  const Side target_;
  const std::byte* const source_block_;
  const Side source_;
  const bool streams_;
  alignas(loops::kLineBytes) Scratch read_;
  alignas(loops::kLineBytes) Scratch written_;
};

// Between views that share no byte.
ConversionFlags cast_views(casts::CastRow cast_row, std::byte* target_block, const Side& target,
                           const std::byte* source_block, const Side& source) {
  const Boxes boxes(target.view, source.view);
  const std::int64_t elements = *checked::product(target.view.shape.span());
  const bool streams =
      !boxes.in_order() && elements >= kLimits.stream_bytes / target.view.itemsize_bytes;
  std::atomic<bool> invalid = false;
  std::atomic<bool> overflow = false;
  for_ranges_of(boxes, target.view.itemsize_bytes + source.view.itemsize_bytes,
                [&](std::int64_t begin, std::int64_t end) {
                  const DefaultFloats floats;
                  CastLoop loop(boxes, cast_row, target_block, target, source_block, source,
                                streams);
                  const ConversionFlags flags = loop.run(begin, end);
                  if (flags.invalid) invalid = true;
                  if (flags.overflow) overflow = true;
                });
  return {.invalid = invalid, .overflow = overflow};
}

// --- Masked copies -------------------------------------------------------------------------------

enum class Selected : std::uint8_t { kNone, kSome, kAll };

Selected selected(const std::byte* mask, std::int64_t count) {
  std::int64_t zeros = 0;
  for (std::int64_t i = 0; i < count; ++i) zeros += mask[i] == std::byte{0} ? 1 : 0;
  if (zeros == 0) return Selected::kAll;
  return zeros == count ? Selected::kNone : Selected::kSome;
}

// Elements that a mask selects, to a row of the target. No byte of another element is written, not
// even with its own value.
struct MaskedRow {
  std::int64_t count;
  std::int64_t stride_bytes;
  std::int64_t itemsize_bytes;
};

using PutWhere = void (*)(const MaskedRow& row, std::byte* target, const std::byte* elements,
                          const std::byte* mask);

// kItemsize 0: of any length.
template <std::size_t kItemsize>
void put_where(const MaskedRow& row, std::byte* target, const std::byte* elements,
               const std::byte* mask) {
  const std::size_t itemsize =
      kItemsize != 0 ? kItemsize : static_cast<std::size_t>(row.itemsize_bytes);
  for (std::int64_t i = 0; i < row.count; ++i) {
    if (mask[i] != std::byte{0}) std::memcpy(target, elements, itemsize);
    target += row.stride_bytes;
    elements += itemsize;
  }
}

PutWhere put_where_of(std::int64_t itemsize_bytes) {
  switch (itemsize_bytes) {
    case 1:
      return put_where<1>;
    case 2:
      return put_where<2>;
    case 4:
      return put_where<4>;
    case 8:
      return put_where<8>;
    case 16:
      return put_where<16>;
    default:
      return put_where<0>;
  }
}

// Packed elements to the part of the target, row by row.
void put_part_where(std::byte* target_block, const StridedView& part, const std::byte* elements,
                    const std::byte* mask) {
  const PutWhere put = put_where_of(part.itemsize_bytes);
  const int innermost = part.ndim() - 1;
  MaskedRow row{1, 0, part.itemsize_bytes};
  if (innermost >= 0)
    row = {part.shape[innermost], part.strides_bytes[innermost], row.itemsize_bytes};
  Extents index(part.ndim(), 0);
  while (true) {
    put(row, target_block + byte_offset(part, index), elements, mask);
    elements += row.count * row.itemsize_bytes;
    mask += row.count;
    int axis = innermost - 1;
    while (axis >= 0 && ++index[axis] == part.shape[axis]) index[axis--] = 0;
    if (axis < 0) return;
  }
}

// Between views that share no byte.
void copy_views_where(std::byte* target_block, const StridedView& target,
                      const std::byte* source_block, const StridedView& source,
                      const std::byte* mask_block, const StridedView& mask,
                      std::int64_t swap_unit_bytes) {
  const Boxes boxes(target, source);
  for_ranges_of(boxes, 2 * target.itemsize_bytes, [&](std::int64_t begin, std::int64_t end) {
    alignas(loops::kLineBytes) Scratch read;
    alignas(loops::kLineBytes) Scratch chosen;
    for (std::int64_t box = begin; box < end; ++box) {
      const StridedView to = boxes.part(target, box);
      const StridedView from = boxes.part(source, box);
      const std::byte* const where = packed_in(chosen, mask_block, boxes.part(mask, box));
      switch (selected(where, *checked::product(to.shape.span()))) {
        case Selected::kNone:
          break;
        case Selected::kAll:  // a box of one element, too, which may be longer than the scratch
          copy_view(target_block, to, source_block, from, swap_unit_bytes);
          break;
        case Selected::kSome:
          put_part_where(target_block, to, packed_in(read, source_block, from, swap_unit_bytes),
                         where);
          break;
      }
    }
  });
}

}  // namespace

absl::StatusOr<ConversionFlags> convert_elements(std::byte* target_block, const StridedView& target,
                                                 Number target_type, const std::byte* source_block,
                                                 const StridedView& source, Number source_type,
                                                 const ConvertOptions& options) {
  const NumberInfo& to = info_of(target_type);
  const NumberInfo& from = info_of(source_type);
  for (const absl::Status& status :
       {check_view("the target", target_block, target, target.shape, to.itemsize_bytes),
        check_view("the source", source_block, source, target.shape, from.itemsize_bytes)}) {
    if (!status.ok()) return status;
  }
  if (!can_convert(target_type, source_type)) {
    return make_error(
        ErrorClass::kType,
        {"the cast", std::string(from.name) + " to " + std::string(to.name),
         "one between floats, or from an integer to float32 or float64", "let NumPy do it"});
  }
  if (is_empty(target.shape)) return ConversionFlags{};
  if (target_type == source_type) {
    const bool swaps = options.target_is_swapped != options.source_is_swapped;
    const absl::Status status = copy_elements(
        target_block, target, source_block, source,
        {.swap_unit_bytes = swaps ? to.itemsize_bytes : 1, .scratch = options.scratch});
    if (!status.ok()) return status;
    return ConversionFlags{};
  }
  const casts::CastRow cast_row = casts::row_for(target_type, source_type);
  const Side written{target, options.target_is_swapped ? to.itemsize_bytes : 1};
  const std::int64_t source_unit = options.source_is_swapped ? from.itemsize_bytes : 1;
  if (!share_bytes(target_block, target, source_block, source)) {
    return cast_views(cast_row, target_block, written, source_block, {source, source_unit});
  }
  const absl::StatusOr<Kept> kept = keep(source_block, source, options.scratch);
  if (!kept.ok()) return kept.status();
  return cast_views(cast_row, target_block, written, kept->block.data(), {kept->view, source_unit});
}

absl::Status copy_elements_where(std::byte* target_block, const StridedView& target,
                                 const std::byte* source_block, const StridedView& source,
                                 const std::byte* mask_block, const StridedView& mask,
                                 const CopyOptions& options) {
  const std::int64_t itemsize = target.itemsize_bytes;
  for (const absl::Status& status :
       {check_view("the target", target_block, target, target.shape, itemsize),
        check_view("the source", source_block, source, target.shape, itemsize),
        check_view("the mask", mask_block, mask, target.shape, 1),
        shared::check_swap(options.swap_unit_bytes, itemsize)}) {
    if (!status.ok()) return status;
  }
  if (is_empty(target.shape) || itemsize == 0) return absl::OkStatus();
  Kept kept_source;
  Kept kept_mask;
  const bool shares_source = share_bytes(target_block, target, source_block, source);
  if (shares_source) {
    absl::StatusOr<Kept> kept = keep(source_block, source, options.scratch);
    if (!kept.ok()) return kept.status();
    kept_source = *std::move(kept);
  }
  const bool shares_mask = share_bytes(target_block, target, mask_block, mask);
  if (shares_mask) {
    absl::StatusOr<Kept> kept = keep(mask_block, mask, options.scratch);
    if (!kept.ok()) return kept.status();
    kept_mask = *std::move(kept);
  }
  copy_views_where(target_block, target, shares_source ? kept_source.block.data() : source_block,
                   shares_source ? kept_source.view : source,
                   shares_mask ? kept_mask.block.data() : mask_block,
                   shares_mask ? kept_mask.view : mask, options.swap_unit_bytes);
  return absl::OkStatus();
}

}  // namespace gridbuf
