module;

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <random>
#include <vector>

module gridbuf.transfer.testing;

import gridbuf.transfer;

namespace gridbuf::testing {
namespace {

static_assert(std::numeric_limits<long double>::digits >= 64);

// The numbers of bits of a float type: fraction and exponent.
struct FloatFormat {
  int fraction_bits;
  int exponent_bits;
};

bool is_float(Number type) { return type >= Number::kFloat16; }
int bits_of(Number type) { return static_cast<int>(8 * info_of(type).itemsize_bytes); }

FloatFormat format_of(Number type) {
  if (type == Number::kFloat16) return {10, 5};
  if (type == Number::kFloat32) return {23, 8};
  return {52, 11};
}

std::uint64_t read_bits(const std::byte* from, Number type) {
  std::uint64_t bits = 0;
  std::memcpy(&bits, from, static_cast<std::size_t>(info_of(type).itemsize_bytes));
  return bits;
}
void write_bits(std::byte* to, Number type, std::uint64_t bits) {
  std::memcpy(to, &bits, static_cast<std::size_t>(info_of(type).itemsize_bytes));
}

std::uint64_t low_bits(int count) {
  return count >= 64 ? ~std::uint64_t{0} : (std::uint64_t{1} << count) - 1;
}

// The fields of a float.
struct Fields {
  bool negative;
  std::uint64_t exponent;
  std::uint64_t fraction;
};

Fields fields_of(std::uint64_t bits, const FloatFormat& format) {
  return {((bits >> (format.fraction_bits + format.exponent_bits)) & 1) != 0,
          (bits >> format.fraction_bits) & low_bits(format.exponent_bits),
          bits & low_bits(format.fraction_bits)};
}
std::uint64_t bits_of(const Fields& fields, const FloatFormat& format) {
  return std::uint64_t{fields.negative} << (format.fraction_bits + format.exponent_bits) |
         fields.exponent << format.fraction_bits | fields.fraction;
}

bool is_nan(std::uint64_t bits, Number type) {
  const FloatFormat format = format_of(type);
  const Fields fields = fields_of(bits, format);
  return fields.exponent == low_bits(format.exponent_bits) && fields.fraction != 0;
}
bool is_signalling(std::uint64_t bits, Number type) {
  const FloatFormat format = format_of(type);
  return is_nan(bits, type) && (bits >> (format.fraction_bits - 1) & 1) == 0;
}

long double value_of(std::uint64_t bits, Number type) {
  if (!is_float(type)) {
    const int unused = 64 - bits_of(type);
    return static_cast<long double>(static_cast<std::int64_t>(bits << unused) >> unused);
  }
  const FloatFormat format = format_of(type);
  const Fields fields = fields_of(bits, format);
  const int bias = (1 << (format.exponent_bits - 1)) - 1;
  long double magnitude;
  if (fields.exponent == low_bits(format.exponent_bits)) {
    magnitude = std::numeric_limits<long double>::infinity();
  } else if (fields.exponent == 0) {
    magnitude =
        std::ldexp(static_cast<long double>(fields.fraction), 1 - bias - format.fraction_bits);
  } else {
    magnitude = std::ldexp(
        static_cast<long double>(fields.fraction | std::uint64_t{1} << format.fraction_bits),
        static_cast<int>(fields.exponent) - bias - format.fraction_bits);
  }
  return fields.negative ? -magnitude : magnitude;
}

// Rounded once, to nearest, ties to even.
std::uint64_t rounded(long double value, Number type, bool& warns) {
  const FloatFormat format = format_of(type);
  const int bias = (1 << (format.exponent_bits - 1)) - 1;
  Fields fields{std::signbit(value), 0, 0};
  const long double magnitude = std::fabs(value);
  const Fields infinity{fields.negative, low_bits(format.exponent_bits), 0};
  if (std::isinf(magnitude)) return bits_of(infinity, format);
  if (magnitude == 0) return bits_of(fields, format);
  // The number in units of the last bit that the type has for numbers of this size.
  const int exponent = std::max(std::ilogb(magnitude), 1 - bias);
  std::uint64_t units = static_cast<std::uint64_t>(
      std::nearbyint(std::ldexp(magnitude, format.fraction_bits - exponent)));
  std::int64_t biased = exponent + bias;
  if (units == std::uint64_t{2} << format.fraction_bits) {
    units >>= 1;
    ++biased;
  }
  if (units < std::uint64_t{1} << format.fraction_bits) biased = 0;  // subnormal
  if (biased >= static_cast<std::int64_t>(low_bits(format.exponent_bits))) {
    warns = true;
    return bits_of(infinity, format);
  }
  fields.exponent = static_cast<std::uint64_t>(biased);
  fields.fraction = units & low_bits(format.fraction_bits);
  return bits_of(fields, format);
}

// Keeps the first bits of the fraction. NumPy casts from and to float16 without float instructions,
// so NaN keep their bits. NaN between float32 and float64 become quiet.
std::uint64_t converted_nan(std::uint64_t bits, Number target, Number source, bool& warns) {
  const FloatFormat from = format_of(source);
  const FloatFormat to = format_of(target);
  Fields fields = fields_of(bits, from);
  fields.exponent = low_bits(to.exponent_bits);
  const int shift = to.fraction_bits - from.fraction_bits;
  fields.fraction = shift >= 0 ? fields.fraction << shift : fields.fraction >> -shift;
  const std::uint64_t quiet = std::uint64_t{1} << (to.fraction_bits - 1);
  if (target == Number::kFloat16 || source == Number::kFloat16) {
    if (fields.fraction == 0) fields.fraction = 1;
  } else {
    fields.fraction |= quiet;
    warns = warns || is_signalling(bits, source);
  }
  return bits_of(fields, to);
}

std::uint64_t to_integer(long double value, Number target) {
  const long double end = std::ldexp(1.0L, bits_of(target) - 1);
  const long double whole = std::trunc(value);
  if (whole >= end || whole < -end) return 0;
  return static_cast<std::uint64_t>(static_cast<std::int64_t>(whole));
}

std::uint64_t converted(std::uint64_t bits, Number target, Number source, bool& warns) {
  if (target == source) return bits;
  if (!is_float(target)) return static_cast<std::uint64_t>(std::llrint(value_of(bits, source)));
  if (is_float(source) && is_nan(bits, source)) return converted_nan(bits, target, source, warns);
  return rounded(value_of(bits, source), target, warns);
}

}  // namespace

bool define_conversion(std::byte* target, Number target_type, const std::byte* source,
                       Number source_type) {
  bool warns = false;
  write_bits(target, target_type,
             converted(read_bits(source, source_type), target_type, source_type, warns));
  return warns;
}

namespace {

void append(std::vector<std::byte>& numbers, Number type, std::uint64_t bits) {
  const auto itemsize = static_cast<std::size_t>(info_of(type).itemsize_bytes);
  numbers.resize(numbers.size() + itemsize);
  write_bits(numbers.data() + numbers.size() - itemsize, type, bits);
}

// The bits of numbers at, just below and just above the powers of two that are limits of a type,
// and of the halves next to them.
void append_limits(std::vector<std::byte>& numbers, Number type) {
  bool ignored = false;
  for (const int power : {-149, -126, -25, -24, -15, -14, -1, 0,  1,  7,  8,  10, 11,  15, 16,
                          17,   23,   24,  25,  31,  32,  52, 53, 54, 62, 63, 64, 127, 128}) {
    const long double limit = std::ldexp(1.0L, power);
    for (const long double step :
         {0.0L, 0.25L, 0.5L, 0.75L, 1.0L, 1.5L, 2.0L, 16.0L, 0.5L * limit, std::ldexp(limit, -11),
          std::ldexp(limit, -12), std::ldexp(limit, -24), std::ldexp(limit, -25),
          std::ldexp(limit, -11) + std::ldexp(limit, -40)}) {
      for (const long double value : {limit + step, limit - step, -limit + step, -limit - step}) {
        if (is_float(type)) {
          append(numbers, type, rounded(value, type, ignored));
        } else {
          append(numbers, type, to_integer(value, type));
        }
      }
    }
  }
}

void append_floats(std::vector<std::byte>& numbers, Number type) {
  const FloatFormat format = format_of(type);
  const std::uint64_t top = low_bits(format.exponent_bits);
  for (const bool negative : {false, true}) {
    for (const std::uint64_t exponent : {std::uint64_t{0}, std::uint64_t{1}, top - 1, top}) {
      for (int bit = 0; bit < format.fraction_bits; ++bit) {
        append(numbers, type, bits_of({negative, exponent, std::uint64_t{1} << bit}, format));
        append(numbers, type, bits_of({negative, exponent, low_bits(bit + 1)}, format));
      }
      append(numbers, type, bits_of({negative, exponent, 0}, format));
    }
    // Around the largest float16 and half of the smallest, where the rounding changes.
    for (const long double value : {65504.0L, 65519.0L, 65519.999L, 65520.0L, 65521.0L, 65535.0L,
                                    65536.0L, std::ldexp(1.0L, -25), std::ldexp(1.5L, -25),
                                    std::ldexp(1.0L, -25) * (1 + std::ldexp(1.0L, -23)), 2049.0L,
                                    2051.0L, 2049.0L + std::ldexp(1.0L, -30)}) {
      bool ignored = false;
      append(numbers, type, rounded(negative ? -value : value, type, ignored));
    }
  }
}

}  // namespace

std::vector<std::byte> special_numbers(Number type) {
  std::vector<std::byte> numbers;
  if (bits_of(type) <= 16) {
    for (std::uint64_t bits = 0; bits <= low_bits(bits_of(type)); ++bits)
      append(numbers, type, bits);
    return numbers;
  }
  append_limits(numbers, type);
  if (is_float(type)) append_floats(numbers, type);
  std::mt19937_64 random(static_cast<std::uint64_t>(type));
  for (int i = 0; i < 4000; ++i) append(numbers, type, random());
  // Random bits almost never give a float near 1.
  for (int i = 0; i < 4000; ++i) {
    bool ignored = false;
    const long double value =
        std::ldexp(static_cast<long double>(static_cast<std::int64_t>(random())),
                   -static_cast<int>(random() % 90));
    if (is_float(type)) append(numbers, type, rounded(value, type, ignored));
  }
  return numbers;
}

}  // namespace gridbuf::testing
