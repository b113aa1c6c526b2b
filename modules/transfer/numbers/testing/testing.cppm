// gridbuf.transfer.numbers.testing: what becomes of a number in another type, word for word.
//
// Purpose. `define_conversion` is the description of gridbuf.transfer.numbers as a program: one
// number at a time, by exact arithmetic, without a thought of speed. Faster loops are held against
// it, bit for bit and flag for flag. `special_numbers` is what they are tried on: the numbers at
// which conversions break.
//
// The key choice: values are kept as long double, which holds every number of every type here
// exactly (integers of 64 bits and float64), so that each conversion rounds once, where its own
// rule says so. Only NaN has no value; its bits are moved by the rules of IEEE 754 and of NumPy.
// Nothing is shared with the loops.
module;

#include <cstddef>
#include <cstdint>
#include <vector>

export module gridbuf.transfer.numbers.testing;

import gridbuf.transfer.numbers;

export namespace gridbuf::testing {

/// Converts the number at `source`, and reports.
ConversionFlags define_conversion(std::byte* target, Number target_type, const std::byte* source,
                                  Number source_type);

/// Numbers of a type, side by side: all of 8 and 16 bits; else 0 of both signs, subnormals,
/// infinities, NaN quiet and signalling with payloads at both ends, powers of two and what lies
/// beside them, the limits of all types and the halves between, and random bits. For complex
/// numbers, pairs of these. Bools of other bytes than 0 and 1, too.
std::vector<std::byte> special_numbers(Number type);

}  // namespace gridbuf::testing
