// float16 by integer arithmetic, without branches: for processors that have no instructions for it,
// and for the numbers whose bits those instructions change (NaN). Private to
// gridbuf.transfer.numbers.
#ifndef GRIDBUF_MODULES_TRANSFER_NUMBERS_HALF_H_
#define GRIDBUF_MODULES_TRANSFER_NUMBERS_HALF_H_

#include <bit>
#include <cstdint>

namespace gridbuf::half {

// From here on a number rounds to infinity: half of the last step above the largest, 65504.
inline constexpr double kOverflow = 65520;

[[gnu::always_inline]] inline std::uint16_t from_float_bits(std::uint32_t bits) {
  const std::uint32_t magnitude = bits & 0x7fffffffU;
  // Normal: the exponent's bias goes from 127 to 15, and 13 bits are rounded off to the nearest,
  // in doubt to the even one. A carry into the exponent is right, up to infinity.
  const std::uint32_t odd = (magnitude >> 13) & 1U;
  std::uint32_t result = (magnitude - 0x38000000U + 0xfffU + odd) >> 13;
  // Subnormal: added to 0.5, whose last bit is worth 2^-24, the number is rounded to that bit.
  const float sum = std::bit_cast<float>(magnitude) + 0.5F;
  const std::uint32_t subnormal = std::bit_cast<std::uint32_t>(sum) - 0x3f000000U;
  result = static_cast<std::int32_t>(magnitude) < 0x38800000 ? subnormal : result;
  result = static_cast<std::int32_t>(magnitude) >= 0x47800000 ? 0x7c00U : result;
  // NaN: what fits of its bits is kept; at least one must be set, or it would be an infinity.
  const std::uint32_t payload = (magnitude >> 13) & 0x3ffU;
  const std::uint32_t nan = 0x7c00U + payload + (payload == 0 ? 1U : 0U);
  result = static_cast<std::int32_t>(magnitude) > 0x7f800000 ? nan : result;
  return static_cast<std::uint16_t>(result | ((bits >> 16) & 0x8000U));
}

// The float32 next to a float64 that rounds to the same float16: rounded to odd, by which a second
// rounding sees that the first was inexact. Not for NaN.
[[gnu::always_inline]] inline std::uint64_t round_to_odd(std::uint64_t bits) {
  constexpr std::uint64_t kLost = 0x1fffffffU;  // what float32 has no room for
  return (bits | ((bits & kLost) + kLost)) & ~kLost;
}

[[gnu::always_inline]] inline std::uint16_t from_double_bits(std::uint64_t bits) {
  const std::uint64_t magnitude = bits & 0x7fffffffffffffffU;
  const bool is_nan = static_cast<std::int64_t>(magnitude) > 0x7ff0000000000000;
  const double odd = std::bit_cast<double>(round_to_odd(is_nan ? 0 : bits));
  const std::uint16_t number =
      from_float_bits(std::bit_cast<std::uint32_t>(static_cast<float>(odd)));
  const std::uint64_t payload = (magnitude >> 42) & 0x3ffU;
  const std::uint64_t nan = 0x7c00U + payload + (payload == 0 ? 1U : 0U) + ((bits >> 48) & 0x8000U);
  return is_nan ? static_cast<std::uint16_t>(nan) : number;
}

[[gnu::always_inline]] inline std::uint32_t to_float_bits(std::uint16_t half) {
  const std::uint32_t magnitude = half & 0x7fffU;
  std::uint32_t result = (magnitude << 13) + 0x38000000U;
  // Subnormals are multiples of 2^-24.
  const float subnormal = static_cast<float>(static_cast<std::int32_t>(magnitude)) * 0x1p-24F;
  result = magnitude < 0x400U ? std::bit_cast<std::uint32_t>(subnormal) : result;
  result = magnitude >= 0x7c00U ? (magnitude << 13) | 0x7f800000U : result;
  return result | (std::uint32_t{half} & 0x8000U) << 16;
}

[[gnu::always_inline]] inline std::uint64_t to_double_bits(std::uint16_t half) {
  const std::uint64_t magnitude = half & 0x7fffU;
  std::uint64_t result = (magnitude << 42) + 0x3f00000000000000U;
  const double subnormal = static_cast<double>(static_cast<std::int32_t>(magnitude)) * 0x1p-24;
  result = magnitude < 0x400U ? std::bit_cast<std::uint64_t>(subnormal) : result;
  result = magnitude >= 0x7c00U ? (magnitude << 42) | 0x7ff0000000000000U : result;
  return result | (std::uint64_t{half} & 0x8000U) << 48;
}

}  // namespace gridbuf::half

#endif  // GRIDBUF_MODULES_TRANSFER_NUMBERS_HALF_H_
