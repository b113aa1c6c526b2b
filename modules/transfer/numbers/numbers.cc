module;

#if defined(__x86_64__)
#include <immintrin.h>
#endif

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <tuple>
#include <type_traits>
#include <utility>

#include "half.h"

module gridbuf.transfer.numbers;

import gridbuf.transfer.simd;

namespace gridbuf {
namespace {

#if defined(__x86_64__)
#define GRIDBUF_AVX2 __attribute__((target("avx2,f16c,fma,bmi2")))
#define GRIDBUF_AVX512 __attribute__((target("avx512f,avx512bw,avx512dq,avx512vl,f16c,fma,bmi2")))
#else
#define GRIDBUF_AVX2
#define GRIDBUF_AVX512
#endif
#define GRIDBUF_INLINE __attribute__((always_inline)) inline

// --- Types ---------------------------------------------------------------------------------------

// Types of their own, because reading a byte of 2 as bool is not defined, and C++20 has no float16.
enum class Bool : std::uint8_t {};
enum class Half : std::uint16_t {};
template <class Part>
struct Complex {
  Part real;
  Part imaginary;
};

// In the order of `Number`.
using Types = std::tuple<Bool, std::int8_t, std::int16_t, std::int32_t, std::int64_t, std::uint8_t,
                         std::uint16_t, std::uint32_t, std::uint64_t, Half, float, double,
                         Complex<float>, Complex<double>>;
static_assert(std::tuple_size_v<Types> == kNumberCount);

template <class T>
inline constexpr bool kIsComplex = false;
template <class Part>
inline constexpr bool kIsComplex<Complex<Part>> = true;

template <class T>
struct PartOf {
  using Type = T;
};
template <class P>
struct PartOf<Complex<P>> {
  using Type = P;
};

// --- Single numbers ------------------------------------------------------------------------------

template <class T>
GRIDBUF_INLINE T load(const std::byte* row, std::int64_t i) {
  T value;
  std::memcpy(&value, row + i * static_cast<std::int64_t>(sizeof(T)), sizeof(T));
  return value;
}

template <class T>
GRIDBUF_INLINE void store(std::byte* row, std::int64_t i, T value) {
  std::memcpy(row + i * static_cast<std::int64_t>(sizeof(T)), &value, sizeof(T));
}

// The unsigned integer of the same length.
template <class T>
using BitsOf = std::conditional_t<
    sizeof(T) == 1, std::uint8_t,
    std::conditional_t<sizeof(T) == 2, std::uint16_t,
                       std::conditional_t<sizeof(T) == 4, std::uint32_t, std::uint64_t>>>;

template <std::floating_point F>
GRIDBUF_INLINE bool is_signalling(F value) {
  using Bits = BitsOf<F>;
  constexpr Bits kInfinity = std::bit_cast<Bits>(std::numeric_limits<F>::infinity());
  constexpr Bits kQuiet = std::bit_cast<Bits>(std::numeric_limits<F>::quiet_NaN());
  const Bits magnitude = std::bit_cast<Bits>(value) & (std::numeric_limits<Bits>::max() >> 1);
  return magnitude > kInfinity && magnitude < kQuiet;
}

// Whether an integer type holds a float without its fraction: lowest - 1 < value < highest + 1.
template <std::integral I, std::floating_point F>
GRIDBUF_INLINE bool holds(F value) {
  using Limits = std::numeric_limits<I>;
  constexpr F kEnd = static_cast<F>(Limits::max() / 2 + 1) * 2;  // a power of two
  if constexpr (std::is_unsigned_v<I>) {
    return static_cast<int>(value > F{-1}) & static_cast<int>(value < kEnd);
  } else if constexpr (Limits::digits < std::numeric_limits<F>::digits) {
    return static_cast<int>(value > -kEnd - 1) & static_cast<int>(value < kEnd);
  } else {  // F has no numbers between lowest - 1 and lowest
    return static_cast<int>(value >= -kEnd) & static_cast<int>(value < kEnd);
  }
}

// How one number becomes another: `convert`, which is defined for all values; `is_suspect`, cheap,
// true for all that are reported; `flags`, of suspects.
template <class T, class S>
struct Cast;

// Between bools and integers, and from these to float32 and float64: nothing is ever reported.
template <class T, class S>
  requires(std::is_arithmetic_v<T> && (std::integral<S> || std::same_as<S, Bool>))
struct Cast<T, S> {
  GRIDBUF_INLINE static T convert(S value) {
    if constexpr (std::same_as<S, Bool>) {
      return static_cast<T>(value != Bool{0} ? 1 : 0);
    } else {
      return static_cast<T>(value);
    }
  }
};
template <std::integral S>
struct Cast<Bool, S> {
  GRIDBUF_INLINE static Bool convert(S value) { return Bool{value != 0}; }
};

template <>
struct Cast<Bool, Half> {
  GRIDBUF_INLINE static Bool convert(Half value) {
    return Bool{(static_cast<std::uint16_t>(value) & 0x7fffU) != 0};
  }
};

template <std::floating_point S>
struct Cast<Bool, S> {
  GRIDBUF_INLINE static Bool convert(S value) { return Bool{value != 0}; }
  GRIDBUF_INLINE static bool is_suspect(S value) { return value != value; }
  static ConversionFlags flags(S value) { return {.invalid = is_signalling(value)}; }
};

template <std::floating_point S>
struct Cast<Bool, Complex<S>> {
  GRIDBUF_INLINE static Bool convert(Complex<S> value) {
    return Bool{static_cast<unsigned char>(static_cast<int>(value.real != 0) |
                                           static_cast<int>(value.imaginary != 0))};
  }
  GRIDBUF_INLINE static bool is_suspect(Complex<S> value) {
    return (static_cast<int>(value.real != value.real) |
            static_cast<int>(value.imaginary != value.imaginary)) != 0;
  }
  static ConversionFlags flags(Complex<S> value) {
    return {.invalid = is_signalling(value.real) || is_signalling(value.imaginary)};
  }
};

template <std::integral T, std::floating_point S>
struct Cast<T, S> {
  GRIDBUF_INLINE static T convert(S value) {
    return static_cast<T>(holds<T>(value) ? value : S{0});
  }
  GRIDBUF_INLINE static bool is_suspect(S value) { return !holds<T>(value); }
  static ConversionFlags flags(S) { return {.invalid = true}; }
};

template <>
struct Cast<double, float> {
  GRIDBUF_INLINE static double convert(float value) { return value; }
  GRIDBUF_INLINE static bool is_suspect(float value) { return value != value; }
  static ConversionFlags flags(float value) { return {.invalid = is_signalling(value)}; }
};

template <>
struct Cast<float, double> {
  GRIDBUF_INLINE static float convert(double value) { return static_cast<float>(value); }
  GRIDBUF_INLINE static bool is_suspect(double value) {
    return !(std::fabs(value) <= std::numeric_limits<float>::max());
  }
  static ConversionFlags flags(double value) {
    return {.invalid = is_signalling(value),
            .overflow = std::isfinite(value) && std::isinf(convert(value))};
  }
};

template <std::floating_point S>
struct Cast<Half, S> {
  GRIDBUF_INLINE static Half convert(S value) {
    if constexpr (std::same_as<S, float>) {
      return Half{half::from_float_bits(std::bit_cast<std::uint32_t>(value))};
    } else {
      return Half{half::from_double_bits(std::bit_cast<std::uint64_t>(value))};
    }
  }
  GRIDBUF_INLINE static bool is_suspect(S value) {
    return !(std::fabs(value) < static_cast<S>(half::kOverflow));
  }
  static ConversionFlags flags(S value) { return {.overflow = std::isfinite(value)}; }
};

template <std::floating_point T>
struct Cast<T, Half> {
  GRIDBUF_INLINE static T convert(Half value) {
    const auto bits = static_cast<std::uint16_t>(value);
    if constexpr (std::same_as<T, float>) {
      return std::bit_cast<float>(half::to_float_bits(bits));
    } else {
      return std::bit_cast<double>(half::to_double_bits(bits));
    }
  }
};

// --- Rows ----------------------------------------------------------------------------------------

// A loop is a class with an inline `run`, which is compiled anew for each instruction set by the
// function that calls it.

template <class T, class S>
struct CastRow {
  using Rule = Cast<T, S>;
  static constexpr bool kReports = requires(S value) { Rule::flags(value); };

  // Number by number, and what there is to report.
  static ConversionFlags report(const std::byte* source, std::int64_t count) {
    ConversionFlags flags;
    for (std::int64_t i = 0; i < count; ++i) {
      const S value = load<S>(source, i);
      if (Rule::is_suspect(value)) flags |= Rule::flags(value);
    }
    return flags;
  }

  // A value that goes through a float register as a whole may come out as a quiet NaN, so results
  // that are floats are stored as they come from `convert` and nothing else is done to them.
  GRIDBUF_INLINE static ConversionFlags run(std::byte* __restrict target,
                                            const std::byte* __restrict source,
                                            std::int64_t count) {
    if constexpr (kReports) {
      BitsOf<typename PartOf<S>::Type> suspects = 0;
      for (std::int64_t i = 0; i < count; ++i) {
        const S value = load<S>(source, i);
        suspects |= Rule::is_suspect(value) ? 1 : 0;
        store<T>(target, i, Rule::convert(value));
      }
      return suspects == 0 ? ConversionFlags{} : report(source, count);
    } else {
      for (std::int64_t i = 0; i < count; ++i) {
        store<T>(target, i, Rule::convert(load<S>(source, i)));
      }
      return {};
    }
  }
};

template <std::size_t kItemsize>
struct CopyRow {
  GRIDBUF_INLINE static ConversionFlags run(std::byte* __restrict target,
                                            const std::byte* __restrict source,
                                            std::int64_t count) {
    // No row of no numbers: memcpy must not be given null, not even then.
    if (count > 0) std::memcpy(target, source, static_cast<std::size_t>(count) * kItemsize);
    return {};
  }
};

// Bits of numbers, of which NaN is not to be touched: moved as integers.
template <class Part>
struct RealPartRow {
  using Bits = BitsOf<Part>;
  GRIDBUF_INLINE static ConversionFlags run(std::byte* __restrict target,
                                            const std::byte* __restrict source,
                                            std::int64_t count) {
    for (std::int64_t i = 0; i < count; ++i) store(target, i, load<Bits>(source, 2 * i));
    return {};
  }
};

template <class Part>
struct WithZerosRow {
  using Bits = BitsOf<Part>;
  GRIDBUF_INLINE static ConversionFlags run(std::byte* __restrict target,
                                            const std::byte* __restrict source,
                                            std::int64_t count) {
    for (std::int64_t i = 0; i < count; ++i) {
      store(target, 2 * i, load<Bits>(source, i));
      store(target, 2 * i + 1, Bits{0});
    }
    return {};
  }
};

template <class Row>
ConversionFlags run_portable(std::byte* target, const std::byte* source, std::int64_t count) {
  return Row::run(target, source, count);
}
template <class Row>
GRIDBUF_AVX2 ConversionFlags run_avx2(std::byte* target, const std::byte* source,
                                      std::int64_t count) {
  return Row::run(target, source, count);
}
template <class Row>
GRIDBUF_AVX512 ConversionFlags run_avx512(std::byte* target, const std::byte* source,
                                          std::int64_t count) {
  return Row::run(target, source, count);
}

template <Simd kSimd, class Row>
constexpr ConvertRow row_of() {
  switch (kSimd) {
    case Simd::kPortable:
      return &run_portable<Row>;
    case Simd::kAvx2:
      return &run_avx2<Row>;
    case Simd::kAvx512:
      return &run_avx512<Row>;
  }
}

// --- float16 by its own instructions -------------------------------------------------------------

// A vector with a number that is NaN or too large goes through the portable loop, which is right
// for all bits and knows what to report.

#if defined(__x86_64__)

constexpr int kNearest = _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC;

template <class T, class S>
ConversionFlags portable_part(std::byte* target, const std::byte* source, std::int64_t at,
                              std::int64_t count) {
  return run_portable<CastRow<T, S>>(target + at * static_cast<std::int64_t>(sizeof(T)),
                                     source + at * static_cast<std::int64_t>(sizeof(S)), count);
}

GRIDBUF_AVX2 GRIDBUF_INLINE bool any_not_below(__m256 values, float bound) {
  const __m256 magnitudes = _mm256_andnot_ps(_mm256_set1_ps(-0.0F), values);
  return _mm256_movemask_ps(_mm256_cmp_ps(magnitudes, _mm256_set1_ps(bound), _CMP_NLT_UQ)) != 0;
}
GRIDBUF_AVX512 GRIDBUF_INLINE bool any_not_below(__m512 values, float bound) {
  return _mm512_cmp_ps_mask(_mm512_abs_ps(values), _mm512_set1_ps(bound), _CMP_NLT_UQ) != 0;
}

// On the float16 themselves: clang 19 makes a comparison of what they become with itself a
// comparison of float16, for which it converts them one by one.
GRIDBUF_AVX2 GRIDBUF_INLINE bool any_nan(__m128i halves) {
  const __m128i magnitudes = _mm_and_si128(halves, _mm_set1_epi16(0x7fff));
  return _mm_movemask_epi8(_mm_cmpgt_epi16(magnitudes, _mm_set1_epi16(0x7c00))) != 0;
}
GRIDBUF_AVX512 GRIDBUF_INLINE bool any_nan(__m256i halves) {
  const __m256i magnitudes = _mm256_and_si256(halves, _mm256_set1_epi16(0x7fff));
  return _mm256_cmpgt_epi16_mask(magnitudes, _mm256_set1_epi16(0x7c00)) != 0;
}

// float64 as the float32 that rounds to the same float16 (half::round_to_odd).
GRIDBUF_AVX2 GRIDBUF_INLINE __m128 odd_floats(const std::byte* source) {
  const __m256i lost = _mm256_set1_epi64x(0x1fffffff);
  const __m256i bits = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(source));
  const __m256i carry = _mm256_add_epi64(_mm256_and_si256(bits, lost), lost);
  const __m256i odd = _mm256_andnot_si256(lost, _mm256_or_si256(bits, carry));
  return _mm256_cvtpd_ps(_mm256_castsi256_pd(odd));
}
GRIDBUF_AVX512 GRIDBUF_INLINE __m256 odd_floats_512(const std::byte* source) {
  const __m512i lost = _mm512_set1_epi64(0x1fffffff);
  const __m512i bits = _mm512_loadu_si512(source);
  const __m512i carry = _mm512_add_epi64(_mm512_and_si512(bits, lost), lost);
  const __m512i odd = _mm512_andnot_si512(lost, _mm512_or_si512(bits, carry));
  return _mm512_cvtpd_ps(_mm512_castsi512_pd(odd));
}

// How 8 (AVX2) or 16 (AVX-512) numbers go from `source` to `target`; false if they must take the
// other way.
template <class T, class S>
struct HalfStep;

template <>
struct HalfStep<float, Half> {
  GRIDBUF_AVX2 GRIDBUF_INLINE static bool avx2(std::byte* target, const std::byte* source) {
    const __m128i halves = _mm_loadu_si128(reinterpret_cast<const __m128i*>(source));
    const __m256 values = _mm256_cvtph_ps(halves);
    _mm256_storeu_ps(reinterpret_cast<float*>(target), values);
    return !any_nan(halves);
  }
  GRIDBUF_AVX512 GRIDBUF_INLINE static bool avx512(std::byte* target, const std::byte* source) {
    const __m256i halves = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(source));
    const __m512 values = _mm512_cvtph_ps(halves);
    _mm512_storeu_ps(target, values);
    return !any_nan(halves);
  }
};

template <>
struct HalfStep<double, Half> {
  GRIDBUF_AVX2 GRIDBUF_INLINE static bool avx2(std::byte* target, const std::byte* source) {
    const __m128i halves = _mm_loadu_si128(reinterpret_cast<const __m128i*>(source));
    const __m256 values = _mm256_cvtph_ps(halves);
    auto* const doubles = reinterpret_cast<double*>(target);
    _mm256_storeu_pd(doubles, _mm256_cvtps_pd(_mm256_castps256_ps128(values)));
    _mm256_storeu_pd(doubles + 4, _mm256_cvtps_pd(_mm256_extractf128_ps(values, 1)));
    return !any_nan(halves);
  }
  GRIDBUF_AVX512 GRIDBUF_INLINE static bool avx512(std::byte* target, const std::byte* source) {
    const __m256i halves = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(source));
    const __m512 values = _mm512_cvtph_ps(halves);
    _mm512_storeu_pd(target, _mm512_cvtps_pd(_mm512_castps512_ps256(values)));
    _mm512_storeu_pd(target + 64, _mm512_cvtps_pd(_mm512_extractf32x8_ps(values, 1)));
    return !any_nan(halves);
  }
};

template <>
struct HalfStep<Half, float> {
  GRIDBUF_AVX2 GRIDBUF_INLINE static bool avx2(std::byte* target, const std::byte* source) {
    const __m256 values = _mm256_loadu_ps(reinterpret_cast<const float*>(source));
    _mm_storeu_si128(reinterpret_cast<__m128i*>(target), _mm256_cvtps_ph(values, kNearest));
    return !any_not_below(values, static_cast<float>(half::kOverflow));
  }
  GRIDBUF_AVX512 GRIDBUF_INLINE static bool avx512(std::byte* target, const std::byte* source) {
    const __m512 values = _mm512_loadu_ps(source);
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(target), _mm512_cvtps_ph(values, kNearest));
    return !any_not_below(values, static_cast<float>(half::kOverflow));
  }
};

template <>
struct HalfStep<Half, double> {
  GRIDBUF_AVX2 GRIDBUF_INLINE static bool avx2(std::byte* target, const std::byte* source) {
    const __m256 values = _mm256_set_m128(odd_floats(source + 32), odd_floats(source));
    _mm_storeu_si128(reinterpret_cast<__m128i*>(target), _mm256_cvtps_ph(values, kNearest));
    return !any_not_below(values, static_cast<float>(half::kOverflow));
  }
  GRIDBUF_AVX512 GRIDBUF_INLINE static bool avx512(std::byte* target, const std::byte* source) {
    const __m512 values = _mm512_insertf32x8(_mm512_castps256_ps512(odd_floats_512(source)),
                                             odd_floats_512(source + 64), 1);
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(target), _mm512_cvtps_ph(values, kNearest));
    return !any_not_below(values, static_cast<float>(half::kOverflow));
  }
};

template <class T, class S>
GRIDBUF_AVX2 ConversionFlags half_row_avx2(std::byte* target, const std::byte* source,
                                           std::int64_t count) {
  constexpr std::int64_t kStep = 8;
  ConversionFlags flags;
  std::int64_t at = 0;
  for (; at + kStep <= count; at += kStep) {
    const bool done = HalfStep<T, S>::avx2(target + at * static_cast<std::int64_t>(sizeof(T)),
                                           source + at * static_cast<std::int64_t>(sizeof(S)));
    if (!done) flags |= portable_part<T, S>(target, source, at, kStep);
  }
  flags |= portable_part<T, S>(target, source, at, count - at);
  return flags;
}

template <class T, class S>
GRIDBUF_AVX512 ConversionFlags half_row_avx512(std::byte* target, const std::byte* source,
                                               std::int64_t count) {
  constexpr std::int64_t kStep = 16;
  ConversionFlags flags;
  std::int64_t at = 0;
  for (; at + kStep <= count; at += kStep) {
    const bool done = HalfStep<T, S>::avx512(target + at * static_cast<std::int64_t>(sizeof(T)),
                                             source + at * static_cast<std::int64_t>(sizeof(S)));
    if (!done) flags |= portable_part<T, S>(target, source, at, kStep);
  }
  flags |= portable_part<T, S>(target, source, at, count - at);
  return flags;
}

#endif  // defined(__x86_64__)

template <Simd kSimd, class T, class S>
constexpr ConvertRow half_row() {
#if defined(__x86_64__)
  if constexpr (kSimd == Simd::kAvx2) return &half_row_avx2<T, S>;
  if constexpr (kSimd == Simd::kAvx512) return &half_row_avx512<T, S>;
#endif
  return &run_portable<CastRow<T, S>>;
}

// --- Rows of two steps ---------------------------------------------------------------------------

// By way of a piece of a third type in the nearest cache.
constexpr std::int64_t kPieceNumbers = 512;

template <class T, class Between, class S, ConvertRow kFirst, ConvertRow kSecond>
ConversionFlags two_steps(std::byte* target, const std::byte* source, std::int64_t count) {
  alignas(64) std::array<std::byte, kPieceNumbers * sizeof(Between)> between;
  ConversionFlags flags;
  for (std::int64_t at = 0; at < count; at += kPieceNumbers) {
    const std::int64_t length = std::min(kPieceNumbers, count - at);
    flags |= kFirst(between.data(), source + at * static_cast<std::int64_t>(sizeof(S)), length);
    flags |= kSecond(target + at * static_cast<std::int64_t>(sizeof(T)), between.data(), length);
  }
  return flags;
}

template <ConvertRow kParts>
ConversionFlags both_parts(std::byte* target, const std::byte* source, std::int64_t count) {
  return kParts(target, source, 2 * count);
}

// --- The table -----------------------------------------------------------------------------------

// What is the same loop is compiled once: integers of one length have the same bytes, and where the
// high bits are cut off, the sign of the source does not matter.
template <class T, class S>
constexpr auto integer_types() {
  using Target = std::make_unsigned_t<T>;
  if constexpr (sizeof(S) >= sizeof(T)) {
    return std::pair<Target, std::make_unsigned_t<S>>{};
  } else {
    return std::pair<Target, S>{};
  }
}

// Between types that are not complex.
template <Simd kSimd, class T, class S>
constexpr ConvertRow real_row() {
  if constexpr (std::same_as<T, S>) {
    return row_of<kSimd, CopyRow<sizeof(T)>>();
  } else if constexpr (std::integral<T> && std::integral<S>) {
    using Pair = decltype(integer_types<T, S>());
    using Row = std::conditional_t<sizeof(T) == sizeof(S), CopyRow<sizeof(T)>,
                                   CastRow<typename Pair::first_type, typename Pair::second_type>>;
    return row_of<kSimd, Row>();
  } else if constexpr (std::same_as<T, Half> && !std::floating_point<S>) {
    // Integers that float32 rounds are infinite as float16: no number is rounded twice.
    return &two_steps<T, float, S, real_row<kSimd, float, S>(), real_row<kSimd, T, float>()>;
  } else if constexpr (std::same_as<S, Half> && std::integral<T>) {
    return &two_steps<T, float, S, real_row<kSimd, float, S>(), real_row<kSimd, T, float>()>;
  } else if constexpr ((std::same_as<T, Half> || std::same_as<S, Half>) && !std::same_as<T, Bool>) {
    return half_row<kSimd, T, S>();
  } else {
    return row_of<kSimd, CastRow<T, S>>();
  }
}

template <Simd kSimd, class T, class S>
constexpr ConvertRow any_row() {
  using TargetPart = typename PartOf<T>::Type;
  using SourcePart = typename PartOf<S>::Type;
  if constexpr (kIsComplex<T> && kIsComplex<S>) {
    return &both_parts<real_row<kSimd, TargetPart, SourcePart>()>;
  } else if constexpr (kIsComplex<S> && std::same_as<T, Bool>) {
    return row_of<kSimd, CastRow<T, S>>();
  } else if constexpr (kIsComplex<S>) {
    // For AVX-512 clang 19 makes gathers of every other number, at half the speed of AVX2's
    // shuffles.
    constexpr Simd kShuffles = kSimd == Simd::kAvx512 ? Simd::kAvx2 : kSimd;
    constexpr ConvertRow kRealParts = row_of<kShuffles, RealPartRow<SourcePart>>();
    if constexpr (std::same_as<T, SourcePart>) return kRealParts;
    return &two_steps<T, SourcePart, S, kRealParts, real_row<kSimd, T, SourcePart>()>;
  } else if constexpr (kIsComplex<T>) {
    constexpr ConvertRow kWithZeros = row_of<kSimd, WithZerosRow<TargetPart>>();
    if constexpr (std::same_as<TargetPart, S>) return kWithZeros;
    return &two_steps<T, TargetPart, S, real_row<kSimd, TargetPart, S>(), kWithZeros>;
  } else {
    return real_row<kSimd, T, S>();
  }
}

using SourceRows = std::array<ConvertRow, kNumberCount>;
using Table = std::array<SourceRows, kNumberCount>;  // by target, then by source

template <Simd kSimd, class T, std::size_t... kSources>
constexpr SourceRows rows_to(std::index_sequence<kSources...>) {
  return {any_row<kSimd, T, std::tuple_element_t<kSources, Types>>()...};
}

template <Simd kSimd, std::size_t... kTargets>
constexpr Table make_table(std::index_sequence<kTargets...> all) {
  return {rows_to<kSimd, std::tuple_element_t<kTargets, Types>>(all)...};
}

constexpr std::array<Table, 3> kTables{
    make_table<Simd::kPortable>(std::make_index_sequence<kNumberCount>()),
    make_table<Simd::kAvx2>(std::make_index_sequence<kNumberCount>()),
    make_table<Simd::kAvx512>(std::make_index_sequence<kNumberCount>())};

}  // namespace

ConvertRow convert_row(Number target, Number source, Simd simd) noexcept {
  return kTables[static_cast<std::size_t>(simd)][static_cast<std::size_t>(target)]
                [static_cast<std::size_t>(source)];
}

}  // namespace gridbuf
