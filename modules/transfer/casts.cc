// Rows of adjacent numbers. The compiler vectorises one loop for each pair of types. SSE2 is
// enough: the loops between float32 and float64 take 0.3 ns for a number in a cache. For large
// arrays the memory takes as long as with AVX-512.

module;

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <type_traits>

module gridbuf.transfer;

namespace gridbuf::casts {
namespace {

// clang's _Float16 calls a library for each number without AVX-512, and makes signalling NaN quiet,
// while NumPy keeps their bits.
enum class Half : std::uint16_t {};

template <std::floating_point F>
bool is_signalling(F value) {
  using Bits = std::conditional_t<sizeof(F) == 4, std::uint32_t, std::uint64_t>;
  constexpr Bits kQuiet = Bits{1} << (std::numeric_limits<F>::digits - 2);
  return std::isnan(value) && (std::bit_cast<Bits>(value) & kQuiet) == 0;
}

// --- float16, by integer arithmetic and without branches -----------------------------------------

// Half a step above the largest number, 65504.
constexpr int kHalfOverflow = 65520;

std::uint16_t half_of(std::uint32_t bits) {
  const std::uint32_t magnitude = bits & 0x7fffffffU;
  // Normal: the bias of the exponent changes from 127 to 15, and 13 bits are rounded to nearest,
  // ties to even. A carry into the exponent is correct, up to infinity.
  const std::uint32_t odd = (magnitude >> 13) & 1U;
  std::uint32_t result = (magnitude - 0x38000000U + 0xfffU + odd) >> 13;
  // Subnormal: the sum with 0.5, whose last bit is 2^-24, rounds the number to that bit.
  const float sum = std::bit_cast<float>(magnitude) + 0.5F;
  const std::uint32_t subnormal = std::bit_cast<std::uint32_t>(sum) - 0x3f000000U;
  result = static_cast<std::int32_t>(magnitude) < 0x38800000 ? subnormal : result;
  result = static_cast<std::int32_t>(magnitude) >= 0x47800000 ? 0x7c00U : result;
  // NaN: keeps the bits that fit. At least one must be set, or the result is an infinity.
  const std::uint32_t payload = (magnitude >> 13) & 0x3ffU;
  const std::uint32_t nan = 0x7c00U + payload + (payload == 0 ? 1U : 0U);
  result = static_cast<std::int32_t>(magnitude) > 0x7f800000 ? nan : result;
  return static_cast<std::uint16_t>(result | ((bits >> 16) & 0x8000U));
}

// A float32 that rounds to the same float16 as the float64: it is rounded to odd, so that the
// second rounding sees that the first was inexact. A NaN keeps the bits that float16 has.
std::uint32_t rounded_to_odd(double value) {
  constexpr std::uint64_t kLost = 0x1fffffffU;  // bits that float32 does not have
  const auto bits = std::bit_cast<std::uint64_t>(value);
  const std::uint64_t odd = (bits | ((bits & kLost) + kLost)) & ~kLost;
  const auto number = std::bit_cast<std::uint32_t>(static_cast<float>(std::bit_cast<double>(odd)));
  const auto payload = static_cast<std::uint32_t>(bits >> 42) & 0x3ffU;
  const std::uint32_t sign = static_cast<std::uint32_t>(bits >> 32) & 0x80000000U;
  const std::uint32_t nan = sign | 0x7f800001U | (payload << 13);
  return value != value ? nan : number;
}

std::uint32_t float_bits_of(Half half) {
  const auto bits = static_cast<std::uint32_t>(half);
  const std::uint32_t magnitude = bits & 0x7fffU;
  std::uint32_t result = (magnitude << 13) + 0x38000000U;
  // Subnormals are multiples of 2^-24.
  const float subnormal = static_cast<float>(static_cast<std::int32_t>(magnitude)) * 0x1p-24F;
  result = magnitude < 0x400U ? std::bit_cast<std::uint32_t>(subnormal) : result;
  result = magnitude >= 0x7c00U ? (magnitude << 13) | 0x7f800000U : result;
  return result | (bits & 0x8000U) << 16;
}

std::uint64_t double_bits_of(Half half) {
  const auto bits = static_cast<std::uint64_t>(half);
  const std::uint64_t magnitude = bits & 0x7fffU;
  std::uint64_t result = (magnitude << 42) + 0x3f00000000000000U;
  const double subnormal = static_cast<double>(static_cast<std::int32_t>(magnitude)) * 0x1p-24;
  result = magnitude < 0x400U ? std::bit_cast<std::uint64_t>(subnormal) : result;
  result = magnitude >= 0x7c00U ? (magnitude << 42) | 0x7ff0000000000000U : result;
  return result | (bits & 0x8000U) << 48;
}

// --- Single numbers ------------------------------------------------------------------------------

// The cast of one number: `convert`, defined for all values, and `warns`, whether NumPy warns of
// the number. `is_suspect` is true for all such numbers and some others: with the exact test the
// loop from float64 to float32 took 2.4 times as long. Floats are returned as integers where the
// bits of NaN must stay.
template <class T, class S>
struct Cast;

template <std::floating_point T, std::integral S>
struct Cast<T, S> {
  static T convert(S value) { return static_cast<T>(value); }
};

#if defined(__aarch64__)
// clang 19 vectorises this cast through float64, and so rounds twice (llvm/llvm-project#130665).
// Long integers are rounded to odd first, so that float64 has them exactly and the last rounding
// sees that they were longer.
template <>
struct Cast<float, std::int64_t> {
  static float convert(std::int64_t value) {
    constexpr std::int64_t kLost = 0x7ff;  // bits that float64 does not have
    constexpr std::uint64_t kExact = std::uint64_t{1} << 53;
    const std::int64_t odd = (value | ((value & kLost) + kLost)) & ~kLost;
    const bool is_exact = static_cast<std::uint64_t>(value) + kExact <= 2 * kExact;
    return static_cast<float>(static_cast<double>(is_exact ? value : odd));
  }
};
#endif

template <>
struct Cast<double, float> {
  static double convert(float value) { return value; }
  static bool is_suspect(float value) { return value != value; }
  static bool warns(float value) { return is_signalling(value); }
};

template <>
struct Cast<float, double> {
  static float convert(double value) { return static_cast<float>(value); }
  static bool is_suspect(double value) {
    return !(std::fabs(value) <= std::numeric_limits<float>::max());
  }
  static bool warns(double value) {
    return is_signalling(value) || (std::isfinite(value) && std::isinf(convert(value)));
  }
};

template <>
struct Cast<Half, float> {
  static Half convert(float value) { return Half{half_of(std::bit_cast<std::uint32_t>(value))}; }
  static bool is_suspect(float value) { return !(std::fabs(value) < kHalfOverflow); }
  static bool warns(float value) { return std::isfinite(value); }
};

template <>
struct Cast<Half, double> {
  static Half convert(double value) { return Half{half_of(rounded_to_odd(value))}; }
  static bool is_suspect(double value) { return !(std::fabs(value) < kHalfOverflow); }
  static bool warns(double value) { return std::isfinite(value); }
};

template <>
struct Cast<float, Half> {
  static std::uint32_t convert(Half value) { return float_bits_of(value); }
};
template <>
struct Cast<double, Half> {
  static std::uint64_t convert(Half value) { return double_bits_of(value); }
};

// --- Rows ----------------------------------------------------------------------------------------

template <class T>
T load(const std::byte* row, std::int64_t i) {
  T value;
  std::memcpy(&value, row + i * static_cast<std::int64_t>(sizeof(T)), sizeof(T));
  return value;
}

template <class T>
void store(std::byte* row, std::int64_t i, T value) {
  std::memcpy(row + i * static_cast<std::int64_t>(sizeof(T)), &value, sizeof(T));
}

template <class T, class S>
bool cast_row(std::byte* __restrict target, const std::byte* __restrict source,
              std::int64_t count) {
  using Rule = Cast<T, S>;
  if constexpr (requires(S value) { Rule::warns(value); }) {
    // As long as the numbers, so that the loop is vectorised.
    std::conditional_t<sizeof(S) == 8, std::uint64_t, std::uint32_t> suspects = 0;
    for (std::int64_t i = 0; i < count; ++i) {
      const S value = load<S>(source, i);
      suspects |= Rule::is_suspect(value) ? 1 : 0;
      store(target, i, Rule::convert(value));
    }
    for (std::int64_t i = 0; suspects != 0 && i < count; ++i) {
      const S value = load<S>(source, i);
      if (Rule::is_suspect(value) && Rule::warns(value)) return true;
    }
  } else {
    for (std::int64_t i = 0; i < count; ++i) store(target, i, Rule::convert(load<S>(source, i)));
  }
  return false;
}

using Rows = std::array<CastRow, kNumberCount>;

// Indexed by target (from float16 on) and source, in the order of `Number`; null: without a cast.
constexpr std::array<Rows, 3> kRows{
    Rows{nullptr, nullptr, nullptr, &cast_row<Half, float>, &cast_row<Half, double>},
    Rows{&cast_row<float, std::int32_t>, &cast_row<float, std::int64_t>, &cast_row<float, Half>,
         nullptr, &cast_row<float, double>},
    Rows{&cast_row<double, std::int32_t>, &cast_row<double, std::int64_t>, &cast_row<double, Half>,
         &cast_row<double, float>, nullptr}};

}  // namespace

CastRow row_for(Number target, Number source) noexcept {
  const auto row = static_cast<std::size_t>(target) - static_cast<std::size_t>(Number::kFloat16);
  return kRows[row][static_cast<std::size_t>(source)];
}

}  // namespace gridbuf::casts
