// gridbuf.layout.checked: the one place that multiplies, adds and rounds sizes.
//
// Purpose. Every array library that computed a byte count outside such a unit has an advisory for
// it: products that wrap before the allocation, a rounding that wraps, a bounds check that itself
// overflows. So here is all the size arithmetic of the project: multiply, add, round up to a
// multiple, the product of a shape, and the span of bytes that a strided array touches, negative
// strides included. No other module may write `extent * itemsize`.
//
// Key choice. A result is a value or nothing (`std::optional`): there is no wrapped number to use
// by mistake, no exception, and everything is constexpr, so that the same code decides at compile
// time. Callers turn "nothing" into a message, because only they know the shape and the dtype.
//
// The limit is PTRDIFF_MAX and not SIZE_MAX: a larger object could not be indexed by pointer
// differences. Results lie in [-kMaxBytes, kMaxBytes], so negating one is always defined.

module;

#include <cstddef>
#include <cstdint>
#include <limits>
#include <numeric>
#include <optional>
#include <span>

export module gridbuf.layout.checked;

export namespace gridbuf::checked {

/// The largest number of bytes, or of elements, that anything here may have (2^63 - 1).
inline constexpr std::int64_t kMaxBytes = std::numeric_limits<std::ptrdiff_t>::max();

/// The largest alignment that can be asked for: 1 MiB. Here, because plans and allocations both
/// check it and neither knows the other.
inline constexpr std::int64_t kMaxAlignmentBytes = std::int64_t{1} << 20;

/// a * b, or nothing if it is outside [-kMaxBytes, kMaxBytes].
constexpr std::optional<std::int64_t> mul(std::int64_t a, std::int64_t b) noexcept {
  std::int64_t result = 0;
  if (__builtin_mul_overflow(a, b, &result) || result < -kMaxBytes) return std::nullopt;
  return result;
}

/// a + b, or nothing if it is outside [-kMaxBytes, kMaxBytes].
constexpr std::optional<std::int64_t> add(std::int64_t a, std::int64_t b) noexcept {
  std::int64_t result = 0;
  if (__builtin_add_overflow(a, b, &result) || result < -kMaxBytes) return std::nullopt;
  return result;
}

/// a / b. Nearly every step is 1, and a division of 64 bits takes as long as ten additions.
/// Requires b > 0.
constexpr std::int64_t quotient(std::int64_t a, std::int64_t b) noexcept {
  return b == 1 ? a : a / b;
}

/// The smallest multiple of `multiple` that is >= `value`. Nothing if that exceeds kMaxBytes, or if
/// value < 0 or multiple < 1. `multiple` may be any number, not only a power of two.
constexpr std::optional<std::int64_t> align_up(std::int64_t value, std::int64_t multiple) noexcept {
  if (value < 0 || multiple < 1) return std::nullopt;
  const std::int64_t excess = value % multiple;
  return excess == 0 ? std::optional(value) : add(value, multiple - excess);
}

/// The product of `extents` (1 for none). A zero extent makes it 0, but, as in NumPy, the product
/// of the others must still fit, because strides are made of them. Nothing for negative extents.
constexpr std::optional<std::int64_t> product(std::span<const std::int64_t> extents) noexcept {
  std::int64_t result = 1;
  bool any_zero = false;
  for (const std::int64_t extent : extents) {
    if (extent < 0) return std::nullopt;
    any_zero = any_zero || extent == 0;
    const std::optional<std::int64_t> next = mul(result, extent == 0 ? 1 : extent);
    if (!next) return std::nullopt;
    result = *next;
  }
  return any_zero ? 0 : result;
}

/// The multiple, in elements, that the contiguous extent is rounded up to so that every row starts
/// alike: alignment / gcd(alignment, itemsize). Its byte length is lcm(alignment, itemsize) (unless
/// itemsize is 0, where it is 1 element), so no itemsize is ever "not divisible".
/// Requires alignment_bytes >= 1, itemsize_bytes >= 0.
constexpr std::int64_t padding_multiple(std::int64_t alignment_bytes,
                                        std::int64_t itemsize_bytes) noexcept {
  return alignment_bytes / std::gcd(alignment_bytes, itemsize_bytes);
}

/// The bytes between the lowest and the highest one that an array touches: offsets in
/// [lowest_bytes, highest_bytes) relative to where the array's offsets count from.
struct ByteHull {
  std::int64_t lowest_bytes = 0;
  std::int64_t highest_bytes = 0;  // One past the last byte; equal to lowest_bytes if empty.

  constexpr std::int64_t length_bytes() const noexcept { return highest_bytes - lowest_bytes; }
  friend constexpr bool operator==(const ByteHull&, const ByteHull&) = default;
};

/// The hull of an array whose element (0, ..., 0) starts at `offset_bytes`. Strides may be negative
/// or zero. An array without elements touches nothing: its hull is [offset, offset), whatever its
/// strides. Strides of extents of 1 are ignored. Nothing if a bound or the length leaves the limit,
/// if `shape` and `strides_bytes` differ in length, or for a negative extent or itemsize.
constexpr std::optional<ByteHull> byte_hull(std::span<const std::int64_t> shape,
                                            std::span<const std::int64_t> strides_bytes,
                                            std::int64_t itemsize_bytes,
                                            std::int64_t offset_bytes = 0) noexcept {
  if (shape.size() != strides_bytes.size() || itemsize_bytes < 0) return std::nullopt;
  if (offset_bytes < -kMaxBytes) return std::nullopt;
  bool any_zero = false;
  for (const std::int64_t extent : shape) {
    if (extent < 0) return std::nullopt;
    any_zero = any_zero || extent == 0;
  }
  if (any_zero) return ByteHull{offset_bytes, offset_bytes};

  std::optional<std::int64_t> lowest = offset_bytes;
  std::optional<std::int64_t> highest = add(offset_bytes, itemsize_bytes);
  for (std::size_t axis = 0; axis < shape.size(); ++axis) {
    if (shape[axis] == 1) continue;
    const std::optional<std::int64_t> reach = mul(shape[axis] - 1, strides_bytes[axis]);
    if (!reach || !lowest || !highest) return std::nullopt;
    (*reach < 0 ? lowest : highest) = add(*reach < 0 ? *lowest : *highest, *reach);
  }
  if (!lowest || !highest || !add(*highest, -*lowest)) return std::nullopt;
  return ByteHull{*lowest, *highest};
}

}  // namespace gridbuf::checked
