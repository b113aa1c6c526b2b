module;

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <utility>

module gridbuf.transfer.loops;

namespace gridbuf::loops {
namespace {

// The scratch memory of a band. Together with the source's lines it is half of a small first-level
// cache.
constexpr std::int64_t kScratchBytes = 16384;

// Columns in the scratch memory at once: whole lines of the source, several for longer elements.
template <int kItemsize>
constexpr std::int64_t kScratchColumns = kItemsize == 1 || kItemsize == 2 ? 64 : 32;

// Lines at this distance are in one set of most first-level caches, which have eight ways.
constexpr std::int64_t kConflictStrideBytes = 4096;
constexpr std::int64_t kWays = 8;

// Squares of columns that are prefetched at once, if registers are stored directly.
constexpr std::int64_t kColumnsAhead = 4;

// How many of the first lines of these rows are in the same set.
std::int64_t lines_of_a_set(std::int64_t rows, std::int64_t stride_bytes) {
  const std::int64_t power_of_two = std::max(kLineBytes, stride_bytes & -stride_bytes);
  const std::int64_t sets = std::max<std::int64_t>(1, kConflictStrideBytes / power_of_two);
  return (rows + sets - 1) / sets;
}

// Bands with fewer columns have more rows.
constexpr std::int64_t kFewColumns = 64;

// Along fewer squares, one more costs more than whole cache lines gain.
constexpr std::int64_t kFewSquares = 4;

// Bytes from `address` to the next begin of a cache line.
std::int64_t to_line(const std::byte* address) {
  return static_cast<std::int64_t>(-reinterpret_cast<std::uintptr_t>(address) %
                                   static_cast<std::uintptr_t>(kLineBytes));
}

// As above in elements; 0 if other rows or columns begin at another place of a cache line.
std::int64_t elements_to_line(bool alike, const std::byte* address, std::int64_t itemsize) {
  const std::int64_t bytes = to_line(address);
  return alike && bytes % itemsize == 0 ? bytes / itemsize : 0;
}

// Whether columns of the target (rows of the source) begin at one place of a cache line.
bool target_lines(const Plane& plane) {
  return (plane.target_column_stride_bytes | plane.target_step_bytes) % kLineBytes == 0;
}
bool source_lines(const Plane& plane) {
  return (plane.source_row_stride_bytes | plane.source_step_bytes) % kLineBytes == 0;
}

template <int kItemsize>
struct ElementOf {
  using Type = std::uint64_t;  // 16 bytes are a lane, moved as a whole
};
template <>
struct ElementOf<1> {
  using Type = std::uint8_t;
};
template <>
struct ElementOf<2> {
  using Type = std::uint16_t;
};
template <>
struct ElementOf<4> {
  using Type = std::uint32_t;
};

// The vectors of a square of elements of this size. For small elements, a square of the widest
// vectors would need too many registers.
#if defined(__aarch64__)
constexpr int kTwoByteVector = 16;  // a vector of 32 bytes is two registers
#else
constexpr int kTwoByteVector = 32;
#endif
template <int kItemsize>
constexpr int vector_bytes(int widest_bytes) {
  if (kItemsize == 1) return 16;
  if (kItemsize == 2) return std::min(widest_bytes, kTwoByteVector);
  return widest_bytes;
}

namespace portable {
#define GRIDBUF_VECTOR_BYTES 16
#include "kernels.inc"
#undef GRIDBUF_VECTOR_BYTES
}  // namespace portable

#if defined(__x86_64__)
#pragma clang attribute push(__attribute__((target("avx2,bmi2"))), apply_to = function)
namespace avx2 {
#define GRIDBUF_VECTOR_BYTES 32
#include "kernels.inc"
#undef GRIDBUF_VECTOR_BYTES
}  // namespace avx2
#pragma clang attribute pop

#pragma clang attribute push( \
    __attribute__((target("avx2,bmi2,avx512f,avx512bw,avx512dq,avx512vl"))), apply_to = function)
namespace avx512 {
#define GRIDBUF_VECTOR_BYTES 64
#include "kernels.inc"
#undef GRIDBUF_VECTOR_BYTES
}  // namespace avx512
#pragma clang attribute pop
#elif defined(__aarch64__)
// A pair of registers, because the instruction of non-temporal stores takes a pair.
namespace neon {
#define GRIDBUF_VECTOR_BYTES 32
#include "kernels.inc"
#undef GRIDBUF_VECTOR_BYTES
}  // namespace neon
#endif

}  // namespace

Bands bands_of(const Plane& plane) {
  // As many rows as fill about two whole cache lines; more if a band would have few elements.
  const std::int64_t rows_of_two = 2 * kLineBytes / plane.itemsize_bytes;
  const bool conflict = lines_of_a_set(rows_of_two, plane.source_row_stride_bytes) > kWays;
  const std::int64_t lines = std::max<std::int64_t>(conflict ? 1 : 2, kFewColumns / plane.columns);
  const std::int64_t rows = std::max<std::int64_t>(1, lines * kLineBytes / plane.itemsize_bytes);
  const bool begin_alike = plane.target_column_stride_bytes % kLineBytes == 0 &&
                           to_line(plane.target) % plane.itemsize_bytes == 0 &&
                           kLineBytes % plane.itemsize_bytes == 0;
  const std::int64_t first = std::min(
      plane.rows, elements_to_line(begin_alike, plane.target, plane.itemsize_bytes) + rows);
  const Cut cut{.extent = plane.rows,
                .first = first,
                .size = rows,
                .count = 1 + (plane.rows - first + rows - 1) / rows};
  return {cut, !begin_alike};
}

Blocks blocks_of(const Plane& plane, std::int64_t block_bytes) {
  const std::int64_t side = std::max<std::int64_t>(1, kLineBytes / plane.itemsize_bytes);
  // By BlockSide: one square, the elements before the first cache line, and the distance of a
  // square from the next in both arrays.
  const std::array sides{side, side, std::int64_t{1}};
  const std::array extents{plane.rows, plane.columns, plane.count};
  const bool rows_alike = plane.rows >= kFewSquares * side && target_lines(plane);
  const bool columns_alike = plane.columns >= kFewSquares * side && source_lines(plane);
  const std::array before{elements_to_line(rows_alike, plane.target, plane.itemsize_bytes),
                          elements_to_line(columns_alike, plane.source, plane.itemsize_bytes),
                          std::int64_t{0}};
  const auto apart = [](std::int64_t target_bytes, std::int64_t source_bytes) {
    return magnitude(target_bytes) + magnitude(source_bytes);
  };
  std::array distances{
      side * apart(plane.target_row_stride_bytes, plane.source_row_stride_bytes),
      side * apart(plane.target_column_stride_bytes, plane.source_column_stride_bytes),
      plane.count > 1 ? apart(plane.target_step_bytes, plane.source_step_bytes)
                      : std::numeric_limits<std::int64_t>::max()};
  const bool is_one_block =
      plane.rows * plane.columns * plane.count * plane.itemsize_bytes <= block_bytes;
  // Lines that a square does not fill are written again soon, unless a block keeps them near
  // anyway.
  if (!target_lines(plane) && !is_one_block) distances[static_cast<int>(BlockSide::kRows)] = 0;
  Blocks blocks{.nest = {BlockSide::kColumns, BlockSide::kPlanes, BlockSide::kRows}};
  // Sorts by falling distance. (std::stable_sort may allocate memory.)
  for (const std::size_t i : {0, 1, 0}) {
    BlockSide& a = blocks.nest[i];
    BlockSide& b = blocks.nest[i + 1];
    if (distances[static_cast<std::size_t>(a)] < distances[static_cast<std::size_t>(b)])
      std::swap(a, b);
  }
  if (is_one_block) {
    for (std::size_t at = 0; at < extents.size(); ++at) {
      blocks.cuts[at] = {extents[at], extents[at], extents[at]};
    }
    return blocks;
  }
  std::int64_t room = block_bytes / (side * side * plane.itemsize_bytes);  // for squares
  for (int i = 2; i >= 0; --i) {
    const auto at = static_cast<std::size_t>(blocks.nest[static_cast<std::size_t>(i)]);
    const std::int64_t squares =
        std::clamp<std::int64_t>(room, 1, (extents[at] - 1) / sides[at] + 1);
    const std::int64_t size = squares * sides[at];
    const std::int64_t first = std::min(extents[at], before[at] + size);
    // The last part has the rest, so that no part is shorter than a square.
    blocks.cuts[at] = {.extent = extents[at],
                       .first = first,
                       .size = size,
                       .count = 1 + std::max<std::int64_t>(0, extents[at] - first) / size};
    room /= squares;
  }
  return blocks;
}

#if defined(__x86_64__)
#define GRIDBUF_COMPILED_FOR(simd, function)  \
  ((simd) == Simd::kAvx512 ? avx512::function \
   : (simd) == Simd::kAvx2 ? avx2::function   \
                           : portable::function)
#elif defined(__aarch64__)
#define GRIDBUF_COMPILED_FOR(simd, function) \
  ((simd) == Simd::kNeon ? neon::function : portable::function)
#else
#define GRIDBUF_COMPILED_FOR(simd, function) ((void)(simd), portable::function)
#endif

MoveBand move_band_with(Simd simd) { return GRIDBUF_COMPILED_FOR(simd, move_band_of); }
MoveRows stream_rows_with(Simd simd) { return GRIDBUF_COMPILED_FOR(simd, stream_rows); }
MoveRows copy_rows_with(Simd simd) { return GRIDBUF_COMPILED_FOR(simd, copy_rows); }

void end_stream() {
#if defined(__x86_64__)
  __builtin_ia32_sfence();
#endif
  // aarch64: the release that ends a job orders non-temporal stores like other stores.
}

}  // namespace gridbuf::loops
