// gridbuf.transfer.testing: the definition of a copy as a program, and views and memory for tests.
//
// Copies have one definition (gridbuf.transfer): as if all elements were read first, and then
// written in row-major order of the index. `define_copy` is that sentence as a program, however
// slow. Tests compare every faster path with it, byte for byte, including padding and surroundings.
//
// `RandomViews` makes pairs of views as programs have them, and pairs that break copies. These have
// extents around the lengths of blocks, cache lines and vectors, and permuted and padded axes.
// Their strides may be powers of two, negative or zero, and their elements may share bytes.
// `FencedMemory` is memory between two inaccessible pages. So an access outside a block ends the
// process in every build, not only with a sanitizer.
//
// `define_conversion` is the definition of a cast: it computes the result from the bit fields of
// the floats. `special_numbers` are numbers at which casts break.
//
// Key decision: all cases come from a seed, and a case can be printed as two views. So every
// difference found is an example test at once.
module;

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <random>
#include <span>
#include <string>
#include <vector>

export module gridbuf.transfer.testing;

import gridbuf.layout;
import gridbuf.layout.view;
import gridbuf.transfer;

export namespace gridbuf::testing {

using Bytes = std::vector<std::byte>;

/// Bytes that look random; equal seeds give equal bytes.
void write_random(std::span<std::byte> bytes, std::uint64_t seed);
Bytes random_bytes(std::int64_t length_bytes, std::uint64_t seed);

/// Calls `visit(index)` for every index of `shape` in row-major order.
template <class Visit>
void for_each_index(const Extents& shape, const Visit& visit) {
  if (is_empty(shape)) return;
  Extents index(shape.size(), 0);
  while (true) {
    visit(index);
    int axis = shape.size() - 1;
    while (axis >= 0 && ++index[axis] == shape[axis]) index[axis--] = 0;
    if (axis < 0) return;
  }
}

/// The definition of a copy: reads all elements, swaps the bytes of each unit, then writes the
/// elements in row-major order. Both arguments may be the same block. Requires sound views inside
/// their blocks.
void define_copy(std::byte* target_block, const StridedView& target, const std::byte* source_block,
                 const StridedView& source, std::int64_t swap_unit_bytes = 1);

/// The target's bytes after define_copy.
Bytes expected_copy(const Bytes& target_bytes, const StridedView& target, const Bytes& source_bytes,
                    const StridedView& source, std::int64_t swap_unit_bytes = 1);

/// A copy to test. Blocks begin at or before the views' lowest bytes.
struct CopyCase {
  StridedView target;
  StridedView source;
  std::int64_t swap_unit_bytes = 1;
};

std::string to_string(const CopyCase& copy);

/// Converts the number at `source`; true if NumPy warns of it.
bool define_conversion(std::byte* target, Number target_type, const std::byte* source,
                       Number source_type);

/// Adjacent numbers of a type. For 16 bits, all numbers. Else 0 of both signs, subnormals,
/// infinities, quiet and signalling NaN with payloads at both ends, powers of two and their
/// neighbours, the limits of all types and the halves between, and random bits.
std::vector<std::byte> special_numbers(Number type);

/// Draws views. Equal seeds give equal views.
class RandomViews {
 public:
  explicit RandomViews(std::uint64_t seed) : random_(seed) {}

  /// From 0 to bound - 1.
  std::int64_t below(std::int64_t bound);
  /// True once in `times`.
  bool once_in(std::int64_t times) { return below(times) == 0; }
  std::int64_t one_of(std::initializer_list<std::int64_t> values);

  /// 0 to 4 axes of up to 5 elements; sometimes an extent is 0.
  Extents small_shape();
  /// 1 to 5 axes; up to two have the length of a block, a cache line or a vector, or one more or
  /// less (7, 8, 9, 15, … 513). At most `most_elements`.
  Extents edge_shape(std::int64_t most_elements);
  /// 1 to 17, 24, 32 or 48; half of them 1, 2, 4, 8 or 16.
  std::int64_t itemsize_bytes();
  /// A divisor of the item size; mostly 1.
  std::int64_t swap_unit_bytes(std::int64_t itemsize_bytes);

  /// Axes in any order, with gaps of all kinds, some reversed. Elements do not share bytes.
  StridedView separate(const Extents& shape, std::int64_t itemsize_bytes);
  /// As `separate`, but some axes are repeated (stride 0).
  StridedView repeated(const Extents& shape, std::int64_t itemsize_bytes);
  /// Any strides that stay small: zero, negative, overlapping.
  StridedView any(const Extents& shape, std::int64_t itemsize_bytes);

  /// A pair in separate blocks, each at a random offset. The target is mostly `separate`, the
  /// source of any kind.
  CopyCase copy_of(const Extents& shape);

 private:
  std::int64_t gap_bytes(std::int64_t stride_bytes, std::int64_t itemsize_bytes);
  StridedView in_order(const Extents& shape, std::int64_t itemsize_bytes,
                       std::span<const int> outwards);
  void turn_some_axes(StridedView& view);

  std::mt19937_64 random_;
};

/// The bytes of a block that holds the view, from the block's begin to the view's end.
std::int64_t bytes_up_to_the_end(const StridedView& view);

/// Memory between two pages on which every access ends the process.
class FencedMemory {
 public:
  /// Aborts if the system is out of memory.
  explicit FencedMemory(std::int64_t capacity_bytes);
  ~FencedMemory();
  FencedMemory(const FencedMemory&) = delete;
  FencedMemory& operator=(const FencedMemory&) = delete;

  /// The first `length_bytes`, directly after a fence, aligned to a page.
  std::span<std::byte> behind_fence(std::int64_t length_bytes);
  /// The last `length_bytes`, directly before a fence. Usually not aligned.
  std::span<std::byte> before_fence(std::int64_t length_bytes);

 private:
  std::span<std::byte> hand_out(std::byte* begin, std::int64_t length_bytes);

  std::int64_t capacity_bytes_;
  std::byte* mapping_;
  std::byte* begin_;
  std::byte* watched_begin_;  // the last span, and the poison next to it
  std::byte* watched_end_;
};

}  // namespace gridbuf::testing
