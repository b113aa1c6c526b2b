// gridbuf.transfer: copies, fills and casts between any two layouts on the host.
//
// Views may be padded, permuted, reversed, broadcast (stride 0) or overlapping; elements have any
// number of bytes. The result is defined for every pair of views. It is as if a copy read all
// source elements first, and then wrote them to the target in row-major order of the index. Copies
// neither read nor write padding. Arguments are checked before the first write.
//
// Key decision: the views decide how to copy, not the caller. A copy is planned
// (gridbuf.transfer.loops), and then all threads run it. It moves rows if the layouts agree about
// the innermost dimension, else tiles. The aim is the speed of memcpy; docs/performance.md has the
// measurements.
//
// Casts and masked copies go in boxes that fit in the nearest cache. A box of the source is copied
// into scratch memory in the target's order, cast or selected there, and copied to the target. So
// the loops for layouts do not depend on the types. gridbuf has the casts that the arrays of models
// need. They give NumPy's results; NumPy does the other casts fast enough.
module;

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

export module gridbuf.transfer;

export import gridbuf.alloc;
import gridbuf.layout;
export import gridbuf.layout.view;
import gridbuf.transfer.loops;

export namespace gridbuf {

// --- Instruction sets ----------------------------------------------------------------------------

// The vector instructions that the inner loops of copies and fills use: `Simd`, and a setting for
// the whole process. The setting changes the speed, never the results.
using loops::kSimdVariable;
using loops::set_simd;
using loops::Simd;
using loops::simd;
using loops::simd_named;
using loops::supported_simd;
using loops::to_string;

// --- Copies and fills (transfer.cc) --------------------------------------------------------------

/// What a copy does with the bytes.
struct CopyOptions {
  /// Reverses the bytes of every unit of this length, to swap the byte order
  /// (DType::swap_unit_bytes). 0 and 1: not.
  std::int64_t swap_unit_bytes = 1;

  /// The bytes of each element that are copied, one part after another. Null: all of them.
  const ElementParts* parts = nullptr;

  /// The source of scratch memory of overlapping copies. Null: the host's memory.
  MemoryResource* scratch = nullptr;
};

/// Copies every element of `source` to the element of `target` at the same index. The offsets of
/// each view count from its block, which must contain it. Errors, before the first write: kValue if
/// a view is malformed, shapes or item sizes differ, the block of a view with elements is null, or
/// swap_unit_bytes does not divide the item size; kMemory if the views overlap and scratch memory
/// is not available.
absl::Status copy_elements(std::byte* target_block, const StridedView& target,
                           const std::byte* source_block, const StridedView& source,
                           const CopyOptions& options = {});

/// Writes `element` to every element of `target`. `element` may be a part of the target. Errors:
/// kValue if the view is malformed, element.size() is not its item size, or the block of a view
/// with elements is null; kMemory as above.
absl::Status fill_elements(std::byte* target_block, const StridedView& target,
                           std::span<const std::byte> element, const CopyOptions& options = {});

/// As copy_elements, only for elements with a mask byte other than 0. The mask is a view of the
/// target's shape with items of one byte. Errors: those of copy_elements, for the mask as well.
absl::Status copy_elements_where(std::byte* target_block, const StridedView& target,
                                 const std::byte* source_block, const StridedView& source,
                                 const std::byte* mask_block, const StridedView& mask,
                                 const CopyOptions& options = {});

// --- Casts (transfer.cc, casts.cc) ---------------------------------------------------------------

/// Number types. Floats are those of IEEE 754.
enum class Number : std::uint8_t { kInt32, kInt64, kFloat16, kFloat32, kFloat64 };

/// Name and size of a number type.
struct NumberInfo {
  std::string_view name;  // NumPy's name
  std::int64_t itemsize_bytes;
};

inline constexpr int kNumberCount = 5;
/// In the order of `Number`.
inline constexpr std::array<NumberInfo, kNumberCount> kNumbers{
    {{"int32", 4}, {"int64", 8}, {"float16", 2}, {"float32", 4}, {"float64", 8}}};

/// Name and size of the type.
constexpr const NumberInfo& info_of(Number number) noexcept {
  return kNumbers[static_cast<std::size_t>(number)];
}

/// Whether convert_elements has the cast.
constexpr bool can_convert(Number target, Number source) noexcept {
  return target >= Number::kFloat32 || (target >= Number::kFloat16 && source >= Number::kFloat16);
}

/// Byte orders of a conversion.
struct ConvertOptions {
  /// Whether the numbers of that side are in the opposite of the machine's byte order.
  bool target_is_swapped = false;
  bool source_is_swapped = false;

  /// The source of scratch memory for overlapping views. Null: the host's memory.
  MemoryResource* scratch = nullptr;
};

/// Converts every element of `source` to the element of `target` at the same index, bit for bit as
/// NumPy's casts do. The floating-point environment of the calling thread does not matter. All
/// elements are written. The result is whether NumPy warns of one of the numbers: a finite number
/// became an infinity, or a signalling NaN was made quiet (the result is right).
///
/// Errors: those of copy_elements; kType if can_convert is false; kValue if an item size is not
/// that of its type.
absl::StatusOr<bool> convert_elements(std::byte* target_block, const StridedView& target,
                                      Number target_type, const std::byte* source_block,
                                      const StridedView& source, Number source_type,
                                      const ConvertOptions& options = {});

// --- Digests (digest.cc) -------------------------------------------------------------------------

/// 128 bits that identify values at indices of named dimensions. Layout, padding and the order of
/// dimensions do not matter. Digests add up: that of an array is the sum of those of its parts.
///
/// Each of the two numbers is a sum over the elements, modulo 2^64. An element adds the product of
/// one odd 32-bit number for each dimension, which depends on name and index, and of a weighted sum
/// of the 32-bit words of its value and of its type. So each change of one element changes both
/// numbers. Two exchanged elements leave both unchanged with a probability of at most 2^-62 if one
/// dimension has them, less if their indices differ in more. It does not resist an attacker.
struct Digest {
  std::array<std::uint64_t, 2> sums{};

  Digest& operator+=(const Digest& other) noexcept {
    for (std::size_t k = 0; k < sums.size(); ++k) sums[k] += other.sums[k];
    return *this;
  }
  friend bool operator==(const Digest&, const Digest&) noexcept = default;
};

/// 32 hexadecimal digits.
std::string to_string(const Digest& digest);

/// Name of a dimension, and the index of the view's first point along it.
struct DigestDim {
  std::string_view name;
  std::int64_t first_index = 0;
};

/// The digest of the elements, of all bits or of those in `parts`. Bits decide: 0.0 is not -0.0,
/// and NaNs differ with their payload. `type` names the element type. Elements of the opposite byte
/// order have another digest. Requires a different name for each dimension. Error: kValue if the
/// view is malformed or its block is null.
absl::StatusOr<Digest> digest_elements(const std::byte* block, const StridedView& view,
                                       std::span<const DigestDim> dims, std::string_view type,
                                       const ElementParts* parts = nullptr);

// ---- The checks of arguments, shared with gridbuf.transfer.device. ----

/// The bytes of the view. Error: kValue for a malformed view, and for elements without a block.
/// `role` is for the message: "the source".
absl::StatusOr<checked::ByteHull> hull_of(std::string_view role, const std::byte* block,
                                          const StridedView& view);
/// Error: kValue unless the view has this shape, that of the target, and this item size.
absl::Status check_shape(std::string_view role, const StridedView& view, const Extents& shape,
                         std::int64_t itemsize_bytes);
/// Error: kValue unless the element is as long as the items.
absl::Status check_element(const StridedView& target, std::span<const std::byte> element);

}  // namespace gridbuf

namespace gridbuf::casts {

/// Converts `count` adjacent numbers, at any alignment; true if NumPy warns of one. Source and
/// target must not share bytes.
using CastRow = bool (*)(std::byte* target, const std::byte* source, std::int64_t count);

/// Requires can_convert and target != source.
CastRow row_for(Number target, Number source) noexcept;

}  // namespace gridbuf::casts
