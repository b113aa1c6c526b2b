module;

#include <algorithm>
#include <array>
#include <atomic>
#include <cfenv>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "absl/strings/str_cat.h"
#include "modules/base/status_macros.h"

module gridbuf.transfer;

import gridbuf.alloc;
import gridbuf.alloc.host;
import gridbuf.base;
import gridbuf.layout;
import gridbuf.layout.view;
import gridbuf.transfer.loops;

namespace gridbuf {

absl::StatusOr<checked::ByteHull> hull_of(std::string_view role, const std::byte* block,
                                          const StridedView& view) {
  const std::optional<checked::ByteHull> hull = byte_hull(view);
  if (!hull) {
    return make_error(
        ErrorClass::kValue,
        {role, to_string(view), "as many strides as non-negative extents, within 2^63 - 1 bytes",
         "check shape and strides"});
  }
  if (block == nullptr && hull->length_bytes() > 0 && view.itemsize_bytes > 0) {
    return make_error(ErrorClass::kValue, {absl::StrCat(role, "'s block"), "null",
                                           "memory for " + to_string(view), "allocate it first"});
  }
  return *hull;
}

absl::Status check_shape(std::string_view role, const StridedView& view, const Extents& shape,
                         std::int64_t itemsize_bytes) {
  if (view.shape != shape) {
    return make_error(ErrorClass::kValue,
                      {absl::StrCat(role, "'s shape"), to_string(view.shape),
                       "the target's, " + to_string(shape), "broadcast it first"});
  }
  if (view.itemsize_bytes != itemsize_bytes) {
    return make_error(ErrorClass::kValue,
                      {absl::StrCat(role, "'s itemsize_bytes"), std::to_string(view.itemsize_bytes),
                       std::to_string(itemsize_bytes),
                       "convert the elements first, or pass the type that they have"});
  }
  return absl::OkStatus();
}

absl::Status check_element(const StridedView& target, std::span<const std::byte> element) {
  if (std::ssize(element) == target.itemsize_bytes) return absl::OkStatus();
  return make_error(ErrorClass::kValue,
                    {"the element", std::to_string(element.size()) + " bytes long",
                     "of the target's itemsize, " + std::to_string(target.itemsize_bytes),
                     "convert it to the target's element type"});
}

namespace {

MemoryResource& resource_of(MemoryResource* scratch) {
  return scratch != nullptr ? *scratch : host_resource();
}

absl::Status check_swap(std::int64_t swap_unit_bytes, std::int64_t itemsize_bytes) {
  const bool divides = swap_unit_bytes > 0 && itemsize_bytes % swap_unit_bytes == 0;
  if (swap_unit_bytes == 0 || divides) return absl::OkStatus();
  return make_error(ErrorClass::kValue,
                    {"swap_unit_bytes", std::to_string(swap_unit_bytes),
                     "a divisor of the itemsize, " + std::to_string(itemsize_bytes),
                     "pass 1 to keep the order of the bytes"});
}

// Elements that do not share bytes with the target: the source, or a copy of it.
struct Apart {
  const std::byte* block;
  StridedView view;
  Block own;
};

absl::StatusOr<Apart> keep(const std::byte* block, const StridedView& view,
                           MemoryResource* scratch) {
  const std::optional<StridedView> packed = loops::packed(view);
  const std::optional<checked::ByteHull> hull = packed ? byte_hull(*packed) : std::nullopt;
  if (!hull) {
    return make_error(ErrorClass::kValue, {"the source", to_string(view),
                                           "of at most 2^63 - 1 bytes", "copy a smaller part"});
  }
  absl::StatusOr<Block> kept = resource_of(scratch).allocate({.total_bytes = hull->highest_bytes});
  if (!kept.ok()) return with_context(kept.status(), "copy between overlapping views");
  loops::copy_view(kept->data(), *packed, block, view);
  return Apart{kept->data(), *packed, *std::move(kept)};
}

// One element, seen in the shape of the target.
StridedView repeated(const StridedView& target) {
  return {.shape = target.shape,
          .strides_bytes = Extents(target.ndim(), 0),
          .itemsize_bytes = target.itemsize_bytes};
}

// Between views that do not share bytes.
absl::Status copy_apart(std::byte* target_block, const StridedView& target,
                        const std::byte* source_block, const StridedView& source,
                        const CopyOptions& options) {
  return for_parts(
      options.parts,
      [&](const StridedView& to, const StridedView& from) {
        loops::copy_view(target_block, to, source_block, from, options.swap_unit_bytes);
        return absl::OkStatus();
      },
      target, source);
}

absl::Status fill_apart(std::byte* target_block, const StridedView& target,
                        std::span<const std::byte> element, const CopyOptions& options) {
  if (options.parts == nullptr) {
    loops::fill_view(target_block, target, element);
    return absl::OkStatus();
  }
  return copy_apart(target_block, target, element.data(), repeated(target), options);
}

}  // namespace

absl::Status copy_elements(std::byte* target_block, const StridedView& target,
                           const std::byte* source_block, const StridedView& source,
                           const CopyOptions& options) {
  GRIDBUF_RETURN_IF_ERROR(check_shape("the source", source, target.shape, target.itemsize_bytes));
  GRIDBUF_ASSIGN_OR_RETURN(const auto& target_hull, hull_of("the target", target_block, target));
  GRIDBUF_ASSIGN_OR_RETURN(const auto& source_hull, hull_of("the source", source_block, source));
  GRIDBUF_RETURN_IF_ERROR(check_swap(options.swap_unit_bytes, target.itemsize_bytes));
  if (target_hull.length_bytes() == 0 || target.itemsize_bytes == 0) return absl::OkStatus();
  if (!loops::share_bytes(loops::range_of(target_block, target_hull),
                          loops::range_of(source_block, source_hull))) {
    return copy_apart(target_block, target, source_block, source, options);
  }
  const bool keeps_bytes = options.swap_unit_bytes <= 1;
  if (keeps_bytes && !loops::may_overlap_itself(target) &&
      loops::same_elements(target_block, target, source_block, source)) {
    return absl::OkStatus();
  }
  GRIDBUF_ASSIGN_OR_RETURN(const auto& kept, keep(source_block, source, options.scratch));
  return copy_apart(target_block, target, kept.block, kept.view, options);
}

absl::Status fill_elements(std::byte* target_block, const StridedView& target,
                           std::span<const std::byte> element, const CopyOptions& options) {
  GRIDBUF_RETURN_IF_ERROR(check_element(target, element));
  GRIDBUF_ASSIGN_OR_RETURN(const auto& hull, hull_of("the target", target_block, target));
  if (hull.length_bytes() == 0 || target.itemsize_bytes == 0) return absl::OkStatus();
  const auto element_begin = reinterpret_cast<std::uintptr_t>(element.data());
  const loops::AddressRange element_range{element_begin, element_begin + element.size()};
  if (!loops::share_bytes(loops::range_of(target_block, hull), element_range)) {
    return fill_apart(target_block, target, element, options);
  }
  const absl::StatusOr<Block> kept =
      resource_of(options.scratch).allocate({.total_bytes = target.itemsize_bytes});
  if (!kept.ok()) return with_context(kept.status(), "fill with an element of the target itself");
  std::memcpy(kept->data(), element.data(), element.size());
  return fill_apart(target_block, target, {kept->data(), element.size()}, options);
}

// ==== Casts and masked copies: cutting views into boxes, and the work on a box. ====

namespace {

absl::Status check_view(std::string_view role, const std::byte* block, const StridedView& view,
                        const Extents& shape, std::int64_t itemsize_bytes) {
  GRIDBUF_RETURN_IF_ERROR(check_shape(role, view, shape, itemsize_bytes));
  if (!checked::product(shape.span())) {
    return make_error(ErrorClass::kValue, {"the number of elements", "beyond 64 bits",
                                           "at most 2^63 - 1", "pass a smaller part"});
  }
  return hull_of(role, block, view).status();
}

// --- Boxes ---------------------------------------------------------------------------------------

// The largest size of a box in one view. A longer element is a box. The scratch memory of two boxes
// is on the stack, and threads may have stacks of some 64 KiB.
constexpr std::int64_t kBoxBytes = std::int64_t{3} << 12;

// Rows of a box in the target, where they cross those of the source: one cache line, so that the
// source is read in the longest rows that fit.
constexpr std::int64_t kBoxRowBytes = loops::kLineBytes;

// Threads and non-temporal stores begin at the same thresholds as in copies.
constexpr loops::CopyLimits kStreamed{.stream_bytes = 0, .stream_rows_bytes = 0};

// Cuts views of one shape into boxes with equal indices in all views. The order of the boxes, and
// the order inside a box, is that of the target's memory, or that of the index if elements of the
// target share bytes.
class Boxes {
 public:
  Boxes(const StridedView& target, const StridedView& source)
      : in_order_(loops::may_overlap_itself(target)) {
    for (int axis = 0; axis < target.ndim(); ++axis) {
      if (target.shape[axis] != 1) axes_.push_back(axis);
    }
    const auto stride_of = [](const StridedView& view, int axis) {
      return loops::magnitude(view.strides_bytes[axis]);
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
    std::int64_t room = std::max(kBoxBytes / itemsize, std::int64_t{1});
    // Parts of an extent have about equal lengths, so that a box is never a rest of a few elements.
    const auto grow = [&](int axis, std::int64_t most) {
      most = std::clamp(most, std::int64_t{1}, std::min(room, extents_[axis]));
      const std::int64_t parts = (extents_[axis] - 1) / most + 1;
      box_[axis] = (extents_[axis] - 1) / parts + 1;
      room /= box_[axis];
    };
    int nearest = innermost;
    for (int i = 0; i < innermost && !in_order_; ++i) {
      const std::int64_t stride = loops::magnitude(source.strides_bytes[axes_[i]]);
      const std::int64_t least = loops::magnitude(source.strides_bytes[axes_[nearest]]);
      if (stride != 0 && (stride < least || least == 0)) nearest = i;
    }
    // Rows of the target that use one element of each cache line of the source.
    const bool across =
        nearest != innermost &&
        loops::magnitude(source.strides_bytes[axes_[innermost]]) >= loops::kLineBytes;
    if (across) {
      grow(innermost, kBoxRowBytes / target.itemsize_bytes);
      grow(nearest, room);
    }
    // Axes outside a cut axis are not part of a box, so the boxes follow the order of the index.
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

// Memory for a box of the source, and for a box of the target or a mask.
struct Scratch {
  alignas(loops::kLineBytes) std::array<std::byte, kBoxBytes> read;
  alignas(loops::kLineBytes) std::array<std::byte, kBoxBytes> written;
};

// Calls `work` with ranges of boxes, on all threads if that pays.
template <class Work>
void for_ranges_of(const Boxes& boxes, std::int64_t element_bytes, const Work& work) {
  const std::int64_t box_bytes = boxes.elements_of_a_box() * element_bytes;
  const bool is_short = boxes.total() <= 2 * kStreamed.parallel_bytes / box_bytes;
  const std::int64_t chunk = is_short || boxes.in_order()
                                 ? boxes.total()
                                 : std::max<std::int64_t>(1, 2 * kStreamed.piece_bytes / box_bytes);
  parallel_for(boxes.total(), chunk, work);
}

// A view's part of a box, packed: without a copy if it is packed already, else in `scratch`.
const std::byte* packed_in(std::byte* scratch, const std::byte* block, const StridedView& part,
                           std::int64_t swap_unit_bytes = 1) {
  if (swap_unit_bytes <= 1 && is_c_contiguous(part)) return block + part.offset_bytes;
  loops::copy_view(scratch, *loops::packed(part), block, part, swap_unit_bytes);
  return scratch;
}

absl::StatusOr<Apart> apart_from(const std::byte* target_block, const StridedView& target,
                                 const std::byte* block, const StridedView& view,
                                 MemoryResource* scratch) {
  const bool shares_bytes =
      loops::share_bytes(loops::range_of(target_block, target), loops::range_of(block, view));
  return shares_bytes ? keep(block, view, scratch) : Apart{block, view, Block()};
}

// --- Casts ---------------------------------------------------------------------------------------

// Sets the default floating-point environment while the object lives. Results must not depend on
// the caller's rounding mode or on its flushing of subnormals.
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

// One side of a cast. Bytes are swapped in units of a number.
struct CastOperand {
  std::byte* block;  // of a source: only read
  const StridedView& view;
  std::int64_t swap_unit_bytes;
};

// Between views that do not share bytes. True if NumPy warns of one of the numbers.
bool cast_views(casts::CastRow cast_row, const CastOperand& target, const CastOperand& source) {
  const Boxes boxes(target.view, source.view);
  const std::int64_t elements = *checked::product(target.view.shape.span());
  const bool streams = !boxes.in_order() &&
                       elements >= loops::CopyLimits().stream_bytes / target.view.itemsize_bytes;
  const loops::CopyLimits limits = streams ? kStreamed : loops::CopyLimits();
  std::atomic<bool> warns = false;
  const loops::MoveRows stream_rows = loops::stream_rows_with(simd());
  const auto cast_boxes = [&](std::int64_t begin, std::int64_t end) {
    const DefaultFloats floats;
    Scratch scratch;
    bool found = false;
    for (std::int64_t box = begin; box < end; ++box) {
      const StridedView to = boxes.part(target.view, box);
      const std::byte* const numbers = packed_in(
          scratch.read.data(), source.block, boxes.part(source.view, box), source.swap_unit_bytes);
      const std::int64_t count = *checked::product(to.shape.span());
      std::byte* const run = target.block + to.offset_bytes;
      const bool is_run = target.swap_unit_bytes == 1 && is_c_contiguous(to);
      if (is_run && !streams) {
        found |= cast_row(run, numbers, count);
        continue;
      }
      found |= cast_row(scratch.written.data(), numbers, count);
      if (is_run) {
        stream_rows({.extent = count,
                     .itemsize_bytes = to.itemsize_bytes,
                     .target_stride_bytes = to.itemsize_bytes,
                     .source_stride_bytes = to.itemsize_bytes},
                    run, scratch.written.data());
        continue;
      }
      loops::copy_view(target.block, to, scratch.written.data(), *loops::packed(to),
                       target.swap_unit_bytes, limits);
    }
    if (streams) loops::end_stream();
    if (found) warns = true;
  };
  for_ranges_of(boxes, target.view.itemsize_bytes + source.view.itemsize_bytes, cast_boxes);
  return warns;
}

// --- Masked copies -------------------------------------------------------------------------------

std::int64_t zeros_of(const std::byte* mask, std::int64_t count) {
  std::int64_t zeros = 0;
  for (std::int64_t i = 0; i < count; ++i) zeros += mask[i] == std::byte{0} ? 1 : 0;
  return zeros;
}

// Copies the elements that a mask selects to a row of the target. Never writes bytes of other
// elements, even with their old values.
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
  if (itemsize_bytes == 1) return put_where<1>;
  if (itemsize_bytes == 2) return put_where<2>;
  if (itemsize_bytes == 4) return put_where<4>;
  if (itemsize_bytes == 8) return put_where<8>;
  if (itemsize_bytes == 16) return put_where<16>;
  return put_where<0>;
}

// Writes packed elements to the part of the target, row by row.
void put_part_where(std::byte* target_block, const StridedView& part, const std::byte* elements,
                    const std::byte* mask) {
  const PutWhere put = put_where_of(part.itemsize_bytes);
  const int innermost = part.ndim() - 1;
  MaskedRow row{1, 0, part.itemsize_bytes};
  if (innermost >= 0)
    row = {part.shape[innermost], part.strides_bytes[innermost], row.itemsize_bytes};
  SmallVec<loops::Axis> outer;
  for (int axis = 0; axis < innermost; ++axis) {
    outer.push_back({part.shape[axis], part.strides_bytes[axis], 0});
  }
  loops::Odometer at(outer, target_block + part.offset_bytes, nullptr);
  do {
    put(row, at.target(), elements, mask);
    elements += row.count * row.itemsize_bytes;
    mask += row.count;
  } while (at.next());
}

// Between views that do not share bytes.
void copy_views_where(std::byte* target_block, const StridedView& target,
                      const std::byte* source_block, const StridedView& source,
                      const std::byte* mask_block, const StridedView& mask,
                      std::int64_t swap_unit_bytes) {
  const Boxes boxes(target, source);
  const auto copy_boxes = [&](std::int64_t begin, std::int64_t end) {
    Scratch scratch;
    for (std::int64_t box = begin; box < end; ++box) {
      const StridedView to = boxes.part(target, box);
      const StridedView from = boxes.part(source, box);
      const std::byte* const where =
          packed_in(scratch.written.data(), mask_block, boxes.part(mask, box));
      const std::int64_t count = *checked::product(to.shape.span());
      const std::int64_t zeros = zeros_of(where, count);
      if (zeros == 0) {  // also a box of one element, which may be longer than the scratch memory
        loops::copy_view(target_block, to, source_block, from, swap_unit_bytes);
      } else if (zeros < count) {
        put_part_where(target_block, to,
                       packed_in(scratch.read.data(), source_block, from, swap_unit_bytes), where);
      }
    }
  };
  for_ranges_of(boxes, 2 * target.itemsize_bytes, copy_boxes);
}

}  // namespace

absl::StatusOr<bool> convert_elements(std::byte* target_block, const StridedView& target,
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
         "one between float16, float32 and float64, or from int32 or int64 to float32 or float64",
         "convert to one of these types first"});
  }
  if (is_empty(target.shape)) return false;
  if (target_type == source_type) {
    const bool swaps = options.target_is_swapped != options.source_is_swapped;
    GRIDBUF_RETURN_IF_ERROR(copy_elements(
        target_block, target, source_block, source,
        {.swap_unit_bytes = swaps ? to.itemsize_bytes : 1, .scratch = options.scratch}));
    return false;
  }
  GRIDBUF_ASSIGN_OR_RETURN(const auto& apart,
                           apart_from(target_block, target, source_block, source, options.scratch));
  const CastOperand written{target_block, target,
                            options.target_is_swapped ? to.itemsize_bytes : 1};
  const CastOperand read{const_cast<std::byte*>(apart.block), apart.view,
                         options.source_is_swapped ? from.itemsize_bytes : 1};
  return cast_views(casts::row_for(target_type, source_type), written, read);
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
        check_swap(options.swap_unit_bytes, itemsize)}) {
    if (!status.ok()) return status;
  }
  if (is_empty(target.shape) || itemsize == 0) return absl::OkStatus();
  GRIDBUF_ASSIGN_OR_RETURN(const auto& from,
                           apart_from(target_block, target, source_block, source, options.scratch));
  GRIDBUF_ASSIGN_OR_RETURN(const auto& where,
                           apart_from(target_block, target, mask_block, mask, options.scratch));
  return for_parts(
      options.parts,
      [&](const StridedView& to, const StridedView& read) {
        StridedView chosen = options.parts == nullptr ? where.view : *part_of_each(where.view, {});
        while (chosen.ndim() < to.ndim()) {  // subarrays
          chosen.strides_bytes.push_back(0);
          chosen.shape.push_back(to.shape[chosen.ndim()]);
        }
        copy_views_where(target_block, to, from.block, read, where.block, chosen,
                         options.swap_unit_bytes);
        return absl::OkStatus();
      },
      target, from.view);
}

}  // namespace gridbuf
