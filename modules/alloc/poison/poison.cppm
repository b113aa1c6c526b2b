// gridbuf.alloc.poison: bytes that nobody may touch, as far as AddressSanitizer can tell.
//
// A sanitizer finds accesses beside and after a block of the C library by itself. It cannot know of
// what we do inside of our own: that a kept mapping is free, that the bytes between two rows belong
// to no element. These functions tell it. Built without AddressSanitizer they do nothing and cost
// nothing.
//
// The key choice: plain functions on ranges, and no object that owns a range. Poison must come off
// before the memory is used for anything else, on whatever path that happens (release, reuse,
// fork), and those places know the range anyway.
module;

#include <cstddef>
#include <cstdint>

export module gridbuf.alloc.poison;

export namespace gridbuf {

/// Whether this build has AddressSanitizer, so that touching poisoned bytes ends the process.
bool poison_is_fatal();

/// Poisons [begin, begin + length_bytes). The sanitizer works in granules of 8 bytes: the first
/// bytes of a granule whose last ones are in use stay usable.
void poison_bytes(const std::byte* begin, std::int64_t length_bytes) noexcept;

/// Takes the poison off. Harmless where there is none.
void unpoison_bytes(const std::byte* begin, std::int64_t length_bytes) noexcept;

/// Poisons the rest of each row: `total_bytes` are rows of `row_bytes`, each with `used_bytes` of
/// elements at its begin and padding behind them. Nothing happens if a row has no padding.
void poison_row_padding(const std::byte* begin, std::int64_t total_bytes, std::int64_t row_bytes,
                        std::int64_t used_bytes) noexcept;

}  // namespace gridbuf
