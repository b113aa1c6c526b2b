module;

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>

module gridbuf.transfer.loops;

namespace gridbuf::loops {
namespace {

using MoveOne = void (*)(const Rows& row, std::byte* target, const std::byte* source);

// A separate loop for every kind of row, so that moves are inlined and not calls.
template <MoveOne kMoveOne>
void all(const Rows& rows, std::byte* target, const std::byte* source) {
  for (std::int64_t group = 0; group < rows.groups; ++group) {
    std::byte* to = target + group * rows.target_group_bytes;
    const std::byte* from = source + group * rows.source_group_bytes;
    for (std::int64_t i = 0; i < rows.count; ++i) {
      kMoveOne(rows, to, from);
      to += rows.target_step_bytes;
      from += rows.source_step_bytes;
    }
  }
}

bool is_dense(const Rows& row) {
  return row.target_stride_bytes == row.itemsize_bytes &&
         row.source_stride_bytes == row.itemsize_bytes;
}

// ---- Bytes. ----

// Copies kPart to 2 * kPart bytes; may copy the middle twice.
template <std::size_t kPart>
void copy_between(std::byte* target, const std::byte* source, std::size_t length_bytes) {
  std::array<std::byte, kPart> first;
  std::array<std::byte, kPart> last;
  std::memcpy(first.data(), source, kPart);
  std::memcpy(last.data(), source + length_bytes - kPart, kPart);
  std::memcpy(target, first.data(), kPart);
  std::memcpy(target + length_bytes - kPart, last.data(), kPart);
}

void move_bytes(const Rows& row, std::byte* target, const std::byte* source) {
  const auto length_bytes = static_cast<std::size_t>(row.extent * row.itemsize_bytes);
  if (length_bytes >= 8 && length_bytes <= 16) return copy_between<8>(target, source, length_bytes);
  std::memcpy(target, source, length_bytes);
}

// Rows shorter than a cache line and of at least kPart bytes, for which a call of memcpy takes
// longer than the copy.
template <std::size_t kPart>
void move_parts(const Rows& row, std::byte* target, const std::byte* source) {
  const auto length_bytes = static_cast<std::size_t>(row.extent * row.itemsize_bytes);
  for (std::size_t at = 0; at + 2 * kPart < length_bytes; at += kPart) {
    std::memcpy(target + at, source + at, kPart);
  }
  const std::size_t left = length_bytes <= 2 * kPart ? length_bytes : 2 * kPart;
  copy_between<kPart>(target + length_bytes - left, source + length_bytes - left, left);
}

// ---- Elements. ----

// A stride that the compiler does not know. It vectorises loops if it knows the stride of one side.
constexpr std::int64_t kAnyStride = std::numeric_limits<std::int64_t>::min();

// kItemsize 0: elements of any length.
template <std::size_t kItemsize, std::int64_t kTargetStride, std::int64_t kSourceStride>
void move_elements(const Rows& row, std::byte* target, const std::byte* source) {
  const std::size_t itemsize =
      kItemsize != 0 ? kItemsize : static_cast<std::size_t>(row.itemsize_bytes);
  const std::int64_t target_stride =
      kTargetStride != kAnyStride ? kTargetStride : row.target_stride_bytes;
  const std::int64_t source_stride =
      kSourceStride != kAnyStride ? kSourceStride : row.source_stride_bytes;
  for (std::int64_t i = 0, extent = row.extent; i < extent; ++i) {
    std::memcpy(target + i * target_stride, source + i * source_stride, itemsize);
  }
}

template <std::size_t kItemsize>
void repeat(const Rows& row, std::byte* target, const std::byte* source) {
  std::array<std::byte, kItemsize> element;
  std::memcpy(element.data(), source, kItemsize);
  for (std::int64_t i = 0; i < row.extent; ++i) {
    std::memcpy(target + i * static_cast<std::int64_t>(kItemsize), element.data(), kItemsize);
  }
}

template <std::size_t kItemsize>
MoveRows elements_of(const Rows& row) {
  constexpr auto kStride = static_cast<std::int64_t>(kItemsize);
  if (row.target_stride_bytes == kStride) {
    if (row.source_stride_bytes == 0) return all<repeat<kItemsize>>;
    if (row.source_stride_bytes == -kStride) {
      return all<move_elements<kItemsize, kStride, -kStride>>;
    }
    return all<move_elements<kItemsize, kStride, kAnyStride>>;
  }
  return row.source_stride_bytes == kStride ? all<move_elements<kItemsize, kAnyStride, kStride>>
                                            : all<move_elements<kItemsize, kAnyStride, kAnyStride>>;
}

// ---- Bytes swapped. ----

template <std::size_t kUnit>
void swap_units(std::byte* element, std::size_t itemsize) {
  for (std::size_t at = 0; at < itemsize; at += kUnit) {
    std::reverse(element + at, element + at + kUnit);
  }
}

// Swaps a row without gaps like one long element.
void swap_dense(std::byte* bytes, std::size_t length_bytes, std::size_t unit_bytes) {
  if (unit_bytes == 2) return swap_units<2>(bytes, length_bytes);
  if (unit_bytes == 4) return swap_units<4>(bytes, length_bytes);
  if (unit_bytes == 8) return swap_units<8>(bytes, length_bytes);
  for (std::size_t at = 0; at < length_bytes; at += unit_bytes) {
    std::reverse(bytes + at, bytes + at + unit_bytes);
  }
}

// Element by element: each is complete before the next one is written.
void move_swapped(const Rows& row, std::byte* target, const std::byte* source) {
  const auto itemsize = static_cast<std::size_t>(row.itemsize_bytes);
  const auto unit = static_cast<std::size_t>(row.swap_unit_bytes);
  for (std::int64_t i = 0; i < row.extent; ++i) {
    for (std::size_t at = 0; at < itemsize; at += unit) {
      std::reverse_copy(source + at, source + at + unit, target + at);
    }
    target += row.target_stride_bytes;
    source += row.source_stride_bytes;
  }
}

void move_bytes_swapped(const Rows& row, std::byte* target, const std::byte* source) {
  const auto length_bytes = static_cast<std::size_t>(row.extent * row.itemsize_bytes);
  std::memcpy(target, source, length_bytes);
  swap_dense(target, length_bytes, static_cast<std::size_t>(row.swap_unit_bytes));
}

// A single row may be a part of a row, of any length.
MoveRows bytes_of(Simd simd, const Rows& row) {
  constexpr std::int64_t kFewLinesBytes = 512;
  const std::int64_t length_bytes = row.extent * row.itemsize_bytes;
  if (row.count == 1 || length_bytes > kFewLinesBytes || length_bytes <= 16) return all<move_bytes>;
  return length_bytes < kLineBytes ? all<move_parts<16>> : copy_rows_with(simd);
}

}  // namespace

MoveRows move_rows_with(Simd simd, const Rows& row) {
  if (row.swap_unit_bytes > 1) return is_dense(row) ? all<move_bytes_swapped> : all<move_swapped>;
  if (is_dense(row)) return row.streams ? stream_rows_with(simd) : bytes_of(simd, row);
  if (row.itemsize_bytes == 1) return elements_of<1>(row);
  if (row.itemsize_bytes == 2) return elements_of<2>(row);
  if (row.itemsize_bytes == 4) return elements_of<4>(row);
  if (row.itemsize_bytes == 8) return elements_of<8>(row);
  if (row.itemsize_bytes == 16) return elements_of<16>(row);
  return all<move_elements<0, kAnyStride, kAnyStride>>;
}

void swap_row(const Rows& row, std::byte* target, std::int64_t unit_bytes) {
  const auto itemsize = static_cast<std::size_t>(row.itemsize_bytes);
  const auto unit = static_cast<std::size_t>(unit_bytes);
  if (row.target_stride_bytes == row.itemsize_bytes) {
    return swap_dense(target, static_cast<std::size_t>(row.extent) * itemsize, unit);
  }
  for (std::int64_t i = 0; i < row.extent; ++i) {
    swap_dense(target + i * row.target_stride_bytes, itemsize, unit);
  }
}

}  // namespace gridbuf::loops
