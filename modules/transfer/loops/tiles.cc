module;

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
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

// The lines of this many rows of the source fill half of a first-level cache.
constexpr std::int64_t kCachedRows = 256;

// The lines of this many columns of the target fill half of a first-level cache.
constexpr std::int64_t kCachedColumns = 256;

// Bytes from `address` to the next begin of a cache line.
std::int64_t to_line(const std::byte* address) {
  return static_cast<std::int64_t>(-reinterpret_cast<std::uintptr_t>(address) %
                                   static_cast<std::uintptr_t>(kLineBytes));
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
template <int kItemsize>
constexpr int vector_bytes(int widest_bytes) {
  if (kItemsize == 1) return 16;
  if (kItemsize == 2) return std::min(widest_bytes, 32);
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
#endif

}  // namespace

Band Bands::operator[](std::int64_t index) const {
  if (index == 0) return {0, first_rows};
  const std::int64_t row = first_rows + (index - 1) * rows;
  return {row, std::min(rows, plane_rows - row)};
}

Bands bands_of(const Plane& plane) {
  // As many rows as fill about two whole cache lines; more if a band would have few elements.
  const std::int64_t rows_of_two = 2 * kLineBytes / plane.itemsize_bytes;
  const bool conflict = lines_of_a_set(rows_of_two, plane.source_row_stride_bytes) > kWays;
  const std::int64_t lines = std::max<std::int64_t>(conflict ? 1 : 2, kFewColumns / plane.columns);
  std::int64_t rows = std::max<std::int64_t>(1, lines * kLineBytes / plane.itemsize_bytes);
  // In the caches, lines of the target are farther apart than those of the source, so each is
  // finished first.
  if (!plane.streams && plane.rows > plane.columns) rows = std::max(rows, kCachedRows);
  const std::int64_t before_line_bytes = to_line(plane.target);
  const bool begin_alike = plane.streams && plane.target_column_stride_bytes % kLineBytes == 0 &&
                           before_line_bytes % plane.itemsize_bytes == 0 &&
                           kLineBytes % plane.itemsize_bytes == 0;
  const std::int64_t before_line = begin_alike ? before_line_bytes / plane.itemsize_bytes : 0;
  const std::int64_t first = std::min(plane.rows, before_line + rows);
  return {.first_rows = first,
          .rows = rows,
          .count = 1 + (plane.rows - first + rows - 1) / rows,
          .share_lines = plane.streams && !begin_alike,
          .plane_rows = plane.rows};
}

#if defined(__x86_64__)
#define GRIDBUF_COMPILED_FOR(simd, function)  \
  ((simd) == Simd::kAvx512 ? avx512::function \
   : (simd) == Simd::kAvx2 ? avx2::function   \
                           : portable::function)
#else
#define GRIDBUF_COMPILED_FOR(simd, function) ((void)(simd), portable::function)
#endif

MoveBand move_band_with(Simd simd) { return GRIDBUF_COMPILED_FOR(simd, move_band_of); }
MoveDenseRows stream_rows_with(Simd simd) { return GRIDBUF_COMPILED_FOR(simd, stream_rows); }
MoveDenseRows copy_rows_with(Simd simd) { return GRIDBUF_COMPILED_FOR(simd, copy_rows); }

void end_stream() {
#if defined(__x86_64__)
  __builtin_ia32_sfence();
#endif
}

}  // namespace gridbuf::loops
