// gridbuf.transfer.convert.steps: what else happens to a piece of a row while it is converted.
//
// Purpose. The loops that compute (gridbuf.transfer.numbers) want numbers side by side in the byte
// order of the machine, and write all of them. Arrays have them at any stride
// (gridbuf.transfer.rows moves such), in the other byte order, or only some of them are meant. The
// latter two are here: bytes swapped, elements selected by a mask.
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

export module gridbuf.transfer.convert.steps;

import gridbuf.transfer.simd;

export namespace gridbuf::steps {

/// Whether the loops here know elements of this length.
constexpr bool is_known(std::int64_t itemsize_bytes) noexcept {
  return itemsize_bytes >= 1 && itemsize_bytes <= 16 &&
         (itemsize_bytes & (itemsize_bytes - 1)) == 0;
}

/// Reverses the bytes of each of `units` units of 2, 4 or 8 bytes that lie side by side. `target`
/// may be `source`; else they share no byte.
void swap_bytes(std::byte* target, const std::byte* source, std::int64_t units,
                std::int64_t unit_bytes, Simd simd);

enum class Selected : std::uint8_t { kNone, kSome, kAll };
/// How many bytes of a mask are not 0.
Selected selected(const std::byte* mask, std::int64_t count);

/// target[i * stride] = dense[i] where mask[i] is not 0. No byte of another element is written, not
/// even with what it holds.
void scatter_where(std::byte* target, std::int64_t stride_bytes, const std::byte* dense,
                   const std::byte* mask, std::int64_t count, std::int64_t itemsize_bytes,
                   Simd simd);

/// dense[0, 1, …] = source[i] for the i where mask[i] is not 0; returns how many. `source` is
/// dense, too; they share no byte.
std::int64_t compress(std::byte* dense, const std::byte* source, const std::byte* mask,
                      std::int64_t count, std::int64_t itemsize_bytes);

}  // namespace gridbuf::steps
