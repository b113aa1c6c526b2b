// gridbuf.transfer.fill: one element written to every place of a view.
//
// A fill has one operand, so all that there is to win is how bytes are stored. The element is
// repeated into a pattern of whole lines once; rows are then filled line by line, whatever the
// element's length, and rows that are shorter than a line are treated as one longer element.
// Targets are walked as they lie in memory, never as they are indexed.
//
// The key choice is the kind of store, made for every piece of some 2 MiB:
//
//   lines     vectors, of the width that gridbuf.transfer.simd says. As fast as memset while the
//             target is in the nearer caches.
//   strings   the processor's own loop (x86: rep stos) for elements up to 8 bytes in rows of some
//             kilobytes. It owns lines without fetching them: in the last cache and around its
//             length it was measured 1.2 to 1.7 times as fast as vectors, elsewhere as fast.
//   streams   stores past the caches, for zeros that the caches could not hold (memory that is
//             written as whole lines of zeros takes them three times as fast on the machines
//             measured), and for any element in targets many times larger than caches.
//
// Fresh memory is never streamed: the kernel has just zeroed the page, through the caches, and a
// store that passes them would make the memory write it twice (measured: a fifth slower). Whether a
// piece is fresh the kernel is asked, which takes a microsecond; nobody has to say. Large fills are
// the work of all threads, a padded view's as well as a dense one's, and each piece is touched by
// the thread that fills it, so that pages come to lie near it and are filled while in its caches.
module;

#include <cstddef>
#include <cstdint>
#include <span>

export module gridbuf.transfer.fill;

import gridbuf.layout.view;

export namespace gridbuf::fill {

/// From how many bytes on what is done. Tests set them low; nobody else has a reason to.
struct FillLimits {
  /// All threads, for so many bytes; of elements far apart a part of the page counts.
  std::int64_t parallel_bytes = std::int64_t{1} << 23;
  /// … cut into pieces of about this length.
  std::int64_t piece_bytes = std::int64_t{1} << 21;
  /// Zeros: streamed. The last-level caches of today hold about that.
  std::int64_t stream_zeros_bytes = std::int64_t{1} << 25;
  /// Other elements: streamed. Far beyond the caches, because what an ordinary store leaves in them
  /// need not be written now (measured: slower at 128 MiB, equal at 512).
  std::int64_t stream_bytes = std::int64_t{1} << 28;
};

/// Writes `element` to every element of `target`, as if in row-major order (which shows only where
/// elements share bytes). Bytes that belong to no element are neither read nor written.
///
/// Requires a sound view whose hull lies in writable memory at `target_block`, at least one
/// element, element.size() == target.itemsize_bytes ≥ 1, and that no byte of `element` is in the
/// view's hull. Cannot fail; takes no memory.
void fill_view(std::byte* target_block, const StridedView& target,
               std::span<const std::byte> element, const FillLimits& limits = {});

}  // namespace gridbuf::fill
