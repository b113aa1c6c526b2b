// gridbuf.transfer.convert.rows: elements of a row brought side by side, and taken apart again.
//
// Purpose. The loops that compute (gridbuf.transfer.numbers) want numbers side by side in the byte
// order of the machine; arrays have them strided, swapped, or selected by a mask, and want large
// results written past the caches. Everything between the two is here: gather, swap bytes, scatter,
// scatter where a mask says so, write in full lines.
//
// Key choice. Each step goes through a piece of a few kilobytes in the nearest cache, so that steps
// combine freely, and none has to exist for every pair of types: a swapped, strided, masked
// conversion is four short loops and not one of five hundred. What lies side by side as it should
// takes no step at all.
//
// Elements are 1, 2, 4, 8 or 16 bytes long, at any alignment.
module;

#include <cstddef>
#include <cstdint>

export module gridbuf.transfer.convert.rows;

import gridbuf.transfer.simd;

export namespace gridbuf::rows {

/// Whether the loops here know elements of this length.
constexpr bool is_known(std::int64_t itemsize_bytes) noexcept {
  return itemsize_bytes >= 1 && itemsize_bytes <= 16 &&
         (itemsize_bytes & (itemsize_bytes - 1)) == 0;
}

/// dense[i] = source[i * stride]: elements brought side by side. No byte is shared.
void gather(std::byte* dense, const std::byte* source, std::int64_t stride_bytes,
            std::int64_t count, std::int64_t itemsize_bytes);

/// target[i * stride] = dense[i].
void scatter(std::byte* target, std::int64_t stride_bytes, const std::byte* dense,
             std::int64_t count, std::int64_t itemsize_bytes);

/// target[i * stride] = dense[i] where mask[i] is not 0. No byte of another element is written, not
/// even with what it holds.
void scatter_where(std::byte* target, std::int64_t stride_bytes, const std::byte* dense,
                   const std::byte* mask, std::int64_t count, std::int64_t itemsize_bytes,
                   Simd simd);

/// dense[0, 1, …] = source[i] for the i where mask[i] is not 0; returns how many.
std::int64_t compress(std::byte* dense, const std::byte* source, const std::byte* mask,
                      std::int64_t count, std::int64_t itemsize_bytes);

/// Reverses the bytes of each of `units` units of 2, 4 or 8 bytes that lie side by side. `target`
/// may be `source`; else they share no byte.
void swap_bytes(std::byte* target, const std::byte* source, std::int64_t units,
                std::int64_t unit_bytes, Simd simd);

/// Copies bytes to memory that nobody reads soon: whole cache lines of the target are written
/// without being read before, and without a place in the caches. `finish_streams` before another
/// thread may read.
void stream(std::byte* target, const std::byte* source, std::int64_t length_bytes, Simd simd);
void finish_streams() noexcept;

enum class Selected : std::uint8_t { kNone, kSome, kAll };
Selected selected(const std::byte* mask, std::int64_t count);

}  // namespace gridbuf::rows
