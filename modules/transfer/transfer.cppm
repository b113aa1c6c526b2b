// gridbuf.transfer: copies and fills between any two layouts.
//
// Two functions: copy the elements of one strided view to another of the same shape, and fill a
// view with one element. Views may be padded, permuted, reversed, broadcast (stride 0) or
// overlapping; elements are any number of bytes. The result is defined for every pair: as if all
// source elements were read first, and then written to the target one after the other in row-major
// order of the index. Bytes that belong to no element (padding) are neither read nor written.
//
// The key choice: the views decide, not the caller. A copy is planned (gridbuf.transfer.plan) and
// then run by all threads, whatever the layouts: as rows where they agree about the innermost
// dimension, as tiles where they do not, past the caches where those could not hold the target. The
// aim is the speed of memcpy for every pair of layouts; docs/performance.md says where it is met.
//
// What was found out about two views is kept for the thread's next copy, because short ones take
// less time than that; nothing of it can be seen but by the clock.
//
// Conversions between element types are not copies: gridbuf.transfer.convert does those. Swapping
// the bytes of an element is a copy, because it needs to know only lengths.
module;

#include <cstddef>
#include <cstdint>
#include <span>

#include "absl/status/status.h"

export module gridbuf.transfer;

import gridbuf.alloc;
import gridbuf.layout.view;
import gridbuf.transfer.plan;

export namespace gridbuf {

using plan::CopyLimits;

struct CopyOptions {
  /// The bytes of every run of this many are reversed (a byte order swapped;
  /// DType::swap_unit_bytes). 0 and 1: none.
  std::int64_t swap_unit_bytes = 1;

  /// Where an overlapping copy keeps what it has read. Null: the host's memory. Not used otherwise.
  MemoryResource* scratch = nullptr;

  /// From how many bytes on threads and streaming stores are used: for tests.
  CopyLimits limits = {};
};

/// Copies every element of `source` to the element of `target` at the same index. Each view counts
/// its bytes from its own block. To copy with broadcasting, broadcast the source's view first.
///
/// The views must describe memory that is there: readable and writable respectively, their hulls
/// within it. Errors, before anything is written: kValue if a view is malformed, shapes or item
/// sizes differ, a block is null though there are elements, or swap_unit_bytes does not divide the
/// item size; kMemory if the views overlap and there is no scratch memory.
absl::Status copy_elements(std::byte* target_block, const StridedView& target,
                           const std::byte* source_block, const StridedView& source,
                           const CopyOptions& options = {});

/// Writes `element` to every element of `target`. `element` may lie in the target itself.
/// Errors: kValue if the view is malformed, element.size() is not its item size, or its block is
/// null though there are elements; kMemory as above.
absl::Status fill_elements(std::byte* target_block, const StridedView& target,
                           std::span<const std::byte> element, const CopyOptions& options = {});

}  // namespace gridbuf
