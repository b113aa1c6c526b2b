module;

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

module gridbuf.transfer;

import gridbuf.alloc;
import gridbuf.alloc.host;
import gridbuf.error;
import gridbuf.layout.checked;
import gridbuf.layout.extents;
import gridbuf.layout.view;
import gridbuf.threads;
import gridbuf.transfer.fill;
import gridbuf.transfer.walk;

namespace gridbuf {
namespace {

// --- Checks --------------------------------------------------------------------------------------

absl::Status check_view(std::string_view role, const std::byte* block, const StridedView& view) {
  if (!byte_hull(view)) {
    return make_error(
        ErrorClass::kValue,
        {role, to_string(view), "as many strides as non-negative extents, within 2^63 - 1 bytes",
         "check shape and strides"});
  }
  if (block == nullptr && !is_empty(view.shape) && view.itemsize_bytes > 0) {
    return make_error(ErrorClass::kValue, {std::string(role).append("'s block"), "null",
                                           "memory for " + to_string(view), "allocate it first"});
  }
  return absl::OkStatus();
}

absl::Status check_pair(const StridedView& target, const StridedView& source) {
  if (target.shape != source.shape) {
    return make_error(ErrorClass::kValue,
                      {"the source's shape", to_string(source.shape),
                       "the target's, " + to_string(target.shape), "broadcast the source first"});
  }
  if (target.itemsize_bytes != source.itemsize_bytes) {
    return make_error(
        ErrorClass::kValue,
        {"the source's itemsize_bytes", std::to_string(source.itemsize_bytes),
         "the target's, " + std::to_string(target.itemsize_bytes), "convert the elements first"});
  }
  return absl::OkStatus();
}

absl::Status check_swap(std::int64_t swap_unit_bytes, std::int64_t itemsize_bytes) {
  const bool divides = swap_unit_bytes > 0 && itemsize_bytes % swap_unit_bytes == 0;
  if (swap_unit_bytes == 0 || divides) return absl::OkStatus();
  return make_error(ErrorClass::kValue,
                    {"swap_unit_bytes", std::to_string(swap_unit_bytes),
                     "a divisor of the itemsize, " + std::to_string(itemsize_bytes),
                     "pass 1 to keep the bytes as they are"});
}

// --- Rows ----------------------------------------------------------------------------------------

// The innermost axis of a walk.
using Row = walk::Axis;

// Elements of a length known to the compiler, which makes each memcpy a load and a store.
template <std::size_t kItemsize>
void copy_row_of(std::byte* target, const std::byte* source, const Row& row) {
  for (std::int64_t i = 0; i < row.extent; ++i) {
    std::memcpy(target, source, kItemsize);
    target += row.target_stride_bytes;
    source += row.source_stride_bytes;
  }
}

void copy_row(std::byte* target, const std::byte* source, const Row& row, std::size_t itemsize) {
  switch (itemsize) {
    case 1:
      return copy_row_of<1>(target, source, row);
    case 2:
      return copy_row_of<2>(target, source, row);
    case 4:
      return copy_row_of<4>(target, source, row);
    case 8:
      return copy_row_of<8>(target, source, row);
    case 16:
      return copy_row_of<16>(target, source, row);
    default:
      break;
  }
  for (std::int64_t i = 0; i < row.extent; ++i) {
    std::memcpy(target, source, itemsize);
    target += row.target_stride_bytes;
    source += row.source_stride_bytes;
  }
}

// One element repeated over `length_bytes` of dense memory: what is filled already is copied on, in
// ever longer pieces that stay in the nearest cache.
void repeat_element(std::byte* target, const std::byte* element, std::size_t itemsize,
                    std::size_t length_bytes) {
  constexpr std::size_t kLongestPiece = 8192;
  std::memcpy(target, element, itemsize);
  std::size_t filled = itemsize;
  std::size_t piece = itemsize;
  while (filled < length_bytes) {
    const std::size_t next = std::min(piece, length_bytes - filled);
    std::memcpy(target + filled, target, next);
    filled += next;
    if (piece < kLongestPiece) piece = filled;
  }
}

// Long rows are filled by all threads. Each piece is filled by the thread that touches it first:
// fresh pages are zeroed and filled while they are in its cache, and come to lie near it.
constexpr std::int64_t kParallelFillBytes = std::int64_t{1} << 23;
constexpr std::int64_t kFillChunkBytes = std::int64_t{1} << 21;

void fill_row(std::byte* target, const std::byte* element, std::size_t itemsize,
              std::int64_t length_bytes) {
  if (length_bytes < kParallelFillBytes) {
    return repeat_element(target, element, itemsize, static_cast<std::size_t>(length_bytes));
  }
  const auto item = static_cast<std::int64_t>(itemsize);
  const std::int64_t chunk = std::max(item, kFillChunkBytes / item * item);
  parallel_for(length_bytes, chunk, [&](std::int64_t begin, std::int64_t end) {
    repeat_element(target + begin, element, itemsize, static_cast<std::size_t>(end - begin));
  });
}

void swap_row(std::byte* target, const std::byte* source, const Row& row, std::size_t itemsize,
              std::size_t unit) {
  for (std::int64_t i = 0; i < row.extent; ++i) {
    for (std::size_t at = 0; at < itemsize; at += unit) {
      std::reverse_copy(source + at, source + at + unit, target + at);
    }
    target += row.target_stride_bytes;
    source += row.source_stride_bytes;
  }
}

// --- The loop nest -------------------------------------------------------------------------------

// What is moved, beside where.
struct Elements {
  std::size_t itemsize;
  std::size_t swap_unit;
};

void run_row(const Elements& elements, std::byte* target, const std::byte* source, const Row& row) {
  if (elements.swap_unit > 1) {
    return swap_row(target, source, row, elements.itemsize, elements.swap_unit);
  }
  const auto itemsize = static_cast<std::int64_t>(elements.itemsize);
  if (row.target_stride_bytes == itemsize && row.source_stride_bytes == itemsize) {
    std::memcpy(target, source, static_cast<std::size_t>(row.extent) * elements.itemsize);
  } else if (row.target_stride_bytes == itemsize && row.source_stride_bytes == 0) {
    fill_row(target, source, elements.itemsize, row.extent * itemsize);
  } else {
    copy_row(target, source, row, elements.itemsize);
  }
}

// Runs the innermost axis as a row for every index of the others, in row-major order.
void run(const Elements& elements, const walk::Walk& walk) {
  if (walk.axes.empty()) return run_row(elements, walk.target, walk.source, {1, 0, 0});
  const int innermost = walk.axes.size() - 1;
  const Row& row = walk.axes[innermost];
  Extents index(innermost, 0);
  std::byte* target = walk.target;
  const std::byte* source = walk.source;
  while (true) {
    run_row(elements, target, source, row);
    int axis = innermost - 1;
    for (; axis >= 0; --axis) {
      const Row& outer = walk.axes[axis];
      target += outer.target_stride_bytes;
      source += outer.source_stride_bytes;
      if (++index[axis] < outer.extent) break;
      target -= outer.extent * outer.target_stride_bytes;
      source -= outer.extent * outer.source_stride_bytes;
      index[axis] = 0;
    }
    if (axis < 0) return;
  }
}

// Copies between blocks that share no byte.
void copy_apart(std::byte* target_block, const StridedView& target, const std::byte* source_block,
                const StridedView& source, std::int64_t swap_unit_bytes) {
  walk::Walk walk = walk::make_walk(target_block, target, source_block, source);
  // Where elements of the target share bytes, the order of writing shows: it stays row-major.
  if (!walk::may_overlap_itself(target)) {
    walk::order_by_target(walk);
    walk::merge_axes(walk);
  }
  run({static_cast<std::size_t>(target.itemsize_bytes),
       static_cast<std::size_t>(std::max<std::int64_t>(swap_unit_bytes, 1))},
      walk);
}

MemoryResource& scratch_of(const CopyOptions& options) {
  return options.scratch != nullptr ? *options.scratch : host_resource();
}

// Copies by way of scratch memory.
absl::Status copy_overlapping(std::byte* target_block, const StridedView& target,
                              const std::byte* source_block, const StridedView& source,
                              const CopyOptions& options) {
  const std::optional<StridedView> between = walk::packed(source);
  const std::optional<checked::ByteHull> hull = between ? byte_hull(*between) : std::nullopt;
  if (!hull) {
    return make_error(ErrorClass::kValue, {"the source", to_string(source),
                                           "of at most 2^63 - 1 bytes", "copy a smaller part"});
  }
  const absl::StatusOr<Block> scratch =
      scratch_of(options).allocate({.total_bytes = hull->highest_bytes});
  if (!scratch.ok()) return with_context(scratch.status(), "copy between overlapping views");
  copy_apart(scratch->data(), *between, source_block, source, 1);
  copy_apart(target_block, target, scratch->data(), *between, options.swap_unit_bytes);
  return absl::OkStatus();
}

}  // namespace

absl::Status copy_elements(std::byte* target_block, const StridedView& target,
                           const std::byte* source_block, const StridedView& source,
                           const CopyOptions& options) {
  for (const absl::Status& status :
       {check_pair(target, source), check_view("the target", target_block, target),
        check_view("the source", source_block, source),
        check_swap(options.swap_unit_bytes, target.itemsize_bytes)}) {
    if (!status.ok()) return status;
  }
  if (is_empty(target.shape) || target.itemsize_bytes == 0) return absl::OkStatus();
  if (!walk::overlap(walk::range_of(target_block, target), walk::range_of(source_block, source))) {
    copy_apart(target_block, target, source_block, source, options.swap_unit_bytes);
    return absl::OkStatus();
  }
  const bool keeps_bytes = options.swap_unit_bytes <= 1;
  if (keeps_bytes && !walk::may_overlap_itself(target) &&
      walk::same_elements(target_block, target, source_block, source)) {
    return absl::OkStatus();
  }
  return copy_overlapping(target_block, target, source_block, source, options);
}

absl::Status fill_elements(std::byte* target_block, const StridedView& target,
                           std::span<const std::byte> element, const CopyOptions& options) {
  if (static_cast<std::int64_t>(element.size()) != target.itemsize_bytes) {
    return make_error(ErrorClass::kValue,
                      {"the element", std::to_string(element.size()) + " bytes long",
                       "of the target's itemsize, " + std::to_string(target.itemsize_bytes),
                       "convert it to the target's element type"});
  }
  if (absl::Status status = check_view("the target", target_block, target); !status.ok()) {
    return status;
  }
  if (is_empty(target.shape) || target.itemsize_bytes == 0) return absl::OkStatus();
  const auto element_begin = reinterpret_cast<std::uintptr_t>(element.data());
  const walk::AddressRange element_range{element_begin, element_begin + element.size()};
  if (!walk::overlap(walk::range_of(target_block, target), element_range)) {
    fill::fill_view(target_block, target, element);
    return absl::OkStatus();
  }
  const absl::StatusOr<Block> kept =
      scratch_of(options).allocate({.total_bytes = target.itemsize_bytes});
  if (!kept.ok()) return with_context(kept.status(), "fill with an element of the target itself");
  std::memcpy(kept->data(), element.data(), element.size());
  fill::fill_view(target_block, target, {kept->data(), element.size()});
  return absl::OkStatus();
}

}  // namespace gridbuf
