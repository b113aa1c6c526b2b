// gridbuf.transfer: copies, fills and casts between any two layouts on the host.
//
// Views may be padded, permuted, reversed, broadcast (stride 0) or overlapping; elements are any
// number of bytes. The result is defined for every pair of views: as if all source elements were
// read first, and then written to the target one after the other in row-major order of the index.
// Padding is neither read nor written. Whatever is refused is refused before a byte is written.
//
// Key decision: the views decide, not the caller. A copy is planned (gridbuf.transfer.loops) and
// then run by all threads: as rows where the layouts agree about the innermost dimension, as tiles
// where they do not. The aim is the speed of memcpy; docs/performance.md says where it is met.
//
// Casts and masked copies go in boxes that the near cache holds: a box of the source is copied into
// scratch memory in the target's order, cast or selected there, and copied on. So no pair of types
// has loops of its own for layouts. Casts exist where arrays of a model need them; NumPy does the
// others well enough, and decides what they mean.
module;

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

export module gridbuf.transfer;

import gridbuf.alloc;
import gridbuf.layout;
import gridbuf.layout.view;
import gridbuf.transfer.loops;

export namespace gridbuf {

// --- Instruction sets ----------------------------------------------------------------------------

// Which vector instructions the inner loops of copies and fills use: `Simd`, and the setting, which
// holds for the process. Speed depends on it, results never do.
using loops::kSimdVariable;
using loops::set_simd;
using loops::Simd;
using loops::simd;
using loops::simd_named;
using loops::supported_simd;
using loops::to_string;

// --- Copies and fills (transfer.cc) --------------------------------------------------------------

struct CopyOptions {
  /// The bytes of every run of this many are reversed (a byte order swapped;
  /// DType::swap_unit_bytes). 0 and 1: none.
  std::int64_t swap_unit_bytes = 1;

  /// Where an overlapping copy keeps what it has read. Null: the host's memory. Not used otherwise.
  MemoryResource* scratch = nullptr;
};

/// Copies every element of `source` to the element of `target` at the same index. Each view counts
/// its bytes from its own block, which must hold it. Errors, before anything is written: kValue if
/// a view is malformed, shapes or item sizes differ, a block is null though there are elements, or
/// swap_unit_bytes does not divide the item size; kMemory if the views overlap and there is no
/// scratch memory.
absl::Status copy_elements(std::byte* target_block, const StridedView& target,
                           const std::byte* source_block, const StridedView& source,
                           const CopyOptions& options = {});

/// Writes `element` to every element of `target`. `element` may be a part of the target itself.
/// Errors: kValue if the view is malformed, element.size() is not its item size, or its block is
/// null though there are elements; kMemory as above.
absl::Status fill_elements(std::byte* target_block, const StridedView& target,
                           std::span<const std::byte> element, const CopyOptions& options = {});

/// As copy_elements, for the elements whose byte in the mask is not 0; the mask is a view of the
/// target's shape with items of one byte. Errors: those of copy_elements, for the mask as well.
absl::Status copy_elements_where(std::byte* target_block, const StridedView& target,
                                 const std::byte* source_block, const StridedView& source,
                                 const std::byte* mask_block, const StridedView& mask,
                                 const CopyOptions& options = {});

// --- Casts (transfer.cc, casts.cc) ---------------------------------------------------------------

/// Numbers. Floats are those of IEEE 754, and bfloat16 as the package ml_dtypes has it.
enum class Number : std::uint8_t { kInt32, kInt64, kFloat16, kBfloat16, kFloat32, kFloat64 };

struct NumberInfo {
  std::string_view name;  // as NumPy calls it
  std::int64_t itemsize_bytes;
};

inline constexpr int kNumberCount = 6;
/// In the order of `Number`.
inline constexpr std::array<NumberInfo, kNumberCount> kNumbers{
    {{"int32", 4}, {"int64", 8}, {"float16", 2}, {"bfloat16", 2}, {"float32", 4}, {"float64", 8}}};

constexpr const NumberInfo& info_of(Number number) noexcept {
  return kNumbers[static_cast<std::size_t>(number)];
}

/// Whether convert_elements has the cast: between floats, and from integers to float32 and float64.
constexpr bool can_convert(Number target, Number source) noexcept {
  return target >= Number::kFloat32 || (target >= Number::kFloat16 && source >= Number::kFloat16);
}

/// What happened to some number of a conversion: nothing less than NumPy warns of.
struct ConversionFlags {
  /// A signalling NaN was made quiet; the result is right.
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

struct ConvertOptions {
  /// The numbers of that side are in the byte order that the machine's is not.
  bool target_is_swapped = false;
  bool source_is_swapped = false;

  /// Where overlapping views are kept. Null: the host's memory.
  MemoryResource* scratch = nullptr;
};

/// Converts every element of `source` to the element of `target` at the same index, bit for bit as
/// NumPy's casts do (to bfloat16, as ml_dtypes does), whatever floating-point environment the
/// calling thread has set.
///
/// Flags tell that some number could not be kept; everything is written nevertheless. Errors: those
/// of copy_elements; kType if there is no such cast; kValue if an item size is not its type's.
absl::StatusOr<ConversionFlags> convert_elements(std::byte* target_block, const StridedView& target,
                                                 Number target_type, const std::byte* source_block,
                                                 const StridedView& source, Number source_type,
                                                 const ConvertOptions& options = {});

}  // namespace gridbuf

namespace gridbuf::casts {

/// Converts `count` numbers side by side, at any alignment. Source and target share no byte.
using CastRow = ConversionFlags (*)(std::byte* target, const std::byte* source, std::int64_t count);

/// Requires can_convert, and two types.
CastRow row_for(Number target, Number source) noexcept;

}  // namespace gridbuf::casts
