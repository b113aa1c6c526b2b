// gridbuf.transfer.numbers: the numeric types, and rows of one converted to rows of another.
//
// Purpose. A conversion between arrays is two questions: where the elements lie, which is the
// business of gridbuf.transfer.convert, and what a number of one type is in another. This module is
// the second: for each of the 14 × 14 pairs of types a loop over numbers that lie side by side.
//
// Key choice. The results are those of NumPy's casts, bit for bit, and NumPy's casts are those of C
// where C defines them: integers wrap around, floats lose their fraction, or are rounded once to
// the nearest (float64 to float16 directly, not by way of float32), anything but zero is true, a
// complex number loses its imaginary part. Where C defines nothing (an integer type cannot hold the
// float), 0 is written and reported: what to do about it is the caller's choice, and a compiler's
// whim is nobody's.
//
// Each loop exists for any processor, for AVX2 and for AVX-512, chosen by the caller
// (gridbuf.transfer.simd). Most are plain C++ that the compiler vectorises for each instruction set
// anew; float16 has instructions of its own there. These make a signalling NaN a quiet one, where
// NumPy keeps its bits, so rows with NaN take the way of integer arithmetic.
//
// The loops expect the default floating-point environment (round to nearest, subnormals kept); the
// caller sees to it.
module;

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

export module gridbuf.transfer.numbers;

import gridbuf.transfer.simd;

export namespace gridbuf {

/// Numbers in the byte order of the machine. A bool is a byte; any but 0 is true, and true is
/// written as 1. Floats are IEEE 754; complex numbers are two of them, the real part first.
enum class Number : std::uint8_t {
  kBool,
  kInt8,
  kInt16,
  kInt32,
  kInt64,
  kUint8,
  kUint16,
  kUint32,
  kUint64,
  kFloat16,
  kFloat32,
  kFloat64,
  kComplex64,
  kComplex128,
};

inline constexpr int kNumberCount = 14;

struct NumberFacts {
  std::string_view name;         // as NumPy calls it
  std::int64_t itemsize_bytes;   // of an element
  std::int64_t swap_unit_bytes;  // whose bytes are reversed between byte orders: half of a complex
  bool is_integer;               // signed or not; a bool is none
};

/// In the order of `Number`.
inline constexpr std::array<NumberFacts, kNumberCount> kNumberFacts{{
    {"bool", 1, 1, false},
    {"int8", 1, 1, true},
    {"int16", 2, 2, true},
    {"int32", 4, 4, true},
    {"int64", 8, 8, true},
    {"uint8", 1, 1, true},
    {"uint16", 2, 2, true},
    {"uint32", 4, 4, true},
    {"uint64", 8, 8, true},
    {"float16", 2, 2, false},
    {"float32", 4, 4, false},
    {"float64", 8, 8, false},
    {"complex64", 8, 4, false},
    {"complex128", 16, 8, false},
}};

constexpr const NumberFacts& facts_of(Number number) noexcept {
  return kNumberFacts[static_cast<std::size_t>(number)];
}

/// Whether every number has the same bytes in both types, so that a conversion is a copy: the same
/// type, or integers of one length. (Not bool and int8: a bool of byte 2 is true, so 1.)
constexpr bool same_bytes(Number target, Number source) noexcept {
  const NumberFacts& a = facts_of(target);
  const NumberFacts& b = facts_of(source);
  return target == source || (a.is_integer && b.is_integer && a.itemsize_bytes == b.itemsize_bytes);
}

/// What happened to some number of a conversion, as NumPy's warnings have it.
struct ConversionFlags {
  /// The integer target cannot hold the float (too large, infinite, NaN), where 0 was written; or a
  /// signalling NaN went from one of float32, float64 to the other or to bool, and its result is
  /// right.
  bool invalid = false;
  /// A finite number became an infinity of a smaller float.
  bool overflow = false;

  constexpr bool any() const noexcept { return invalid || overflow; }
  constexpr ConversionFlags& operator|=(const ConversionFlags& other) noexcept {
    invalid = invalid || other.invalid;
    overflow = overflow || other.overflow;
    return *this;
  }
  friend constexpr bool operator==(const ConversionFlags&, const ConversionFlags&) = default;
};

/// Converts `count` numbers that lie side by side, at any alignment. Source and target share no
/// byte. Long rows are better cut into pieces of some 1000 numbers: a row of which one number is
/// reported, or NaN, is looked at twice.
using ConvertRow = ConversionFlags (*)(std::byte* target, const std::byte* source,
                                       std::int64_t count);

/// The loop of a pair of types. Requires that the processor supports `simd`.
ConvertRow convert_row(Number target, Number source, Simd simd) noexcept;

}  // namespace gridbuf
