module;

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>

module gridbuf.transfer.rows;

import gridbuf.transfer.simd;
import gridbuf.transfer.tiles;

namespace gridbuf::rows {
namespace {

bool is_dense(const Row& row) {
  return row.target_stride_bytes == row.itemsize_bytes &&
         row.source_stride_bytes == row.itemsize_bytes;
}

// ---- Bytes. ----

// Rows of few vectors: a call of memcpy costs more than they do. Reads and writes what is asked,
// the middle perhaps twice.
template <std::size_t kPart>
void copy_between(std::byte* target, const std::byte* source, std::size_t length_bytes) {
  std::array<std::byte, kPart> first;
  std::array<std::byte, kPart> last;
  std::memcpy(first.data(), source, kPart);
  std::memcpy(last.data(), source + length_bytes - kPart, kPart);
  std::memcpy(target, first.data(), kPart);
  std::memcpy(target + length_bytes - kPart, last.data(), kPart);
}

void move_bytes(const Row& row, std::byte* target, const std::byte* source) {
  const auto length_bytes = static_cast<std::size_t>(row.extent * row.itemsize_bytes);
  if (length_bytes > 64) {
    std::memcpy(target, source, length_bytes);
  } else if (length_bytes >= 32) {
    copy_between<32>(target, source, length_bytes);
  } else if (length_bytes >= 16) {
    copy_between<16>(target, source, length_bytes);
  } else if (length_bytes >= 8) {
    copy_between<8>(target, source, length_bytes);
  } else {
    std::memcpy(target, source, length_bytes);
  }
}

template <Simd kSimd>
void stream_bytes(const Row& row, std::byte* target, const std::byte* source) {
  tiles::stream_bytes_with(kSimd)(target, source, row.extent * row.itemsize_bytes);
}

// ---- Elements. ----

template <std::size_t kItemsize>
using Element = std::array<std::byte, kItemsize>;

template <std::size_t kItemsize>
void move_elements(const Row& row, std::byte* target, const std::byte* source) {
  for (std::int64_t i = 0; i < row.extent; ++i) {
    std::memcpy(target, source, kItemsize);
    target += row.target_stride_bytes;
    source += row.source_stride_bytes;
  }
}

void move_any(const Row& row, std::byte* target, const std::byte* source) {
  const auto itemsize = static_cast<std::size_t>(row.itemsize_bytes);
  for (std::int64_t i = 0; i < row.extent; ++i) {
    std::memcpy(target, source, itemsize);
    target += row.target_stride_bytes;
    source += row.source_stride_bytes;
  }
}

// One side's stride known to the compiler: it makes vectors of such loops, where it can.
template <std::size_t kItemsize>
void turn_round(const Row& row, std::byte* target, const std::byte* source) {
  for (std::int64_t i = 0; i < row.extent; ++i) {
    std::memcpy(target + i * static_cast<std::int64_t>(kItemsize),
                source - i * static_cast<std::int64_t>(kItemsize), kItemsize);
  }
}

template <std::size_t kItemsize>
void repeat(const Row& row, std::byte* target, const std::byte* source) {
  Element<kItemsize> element;
  std::memcpy(element.data(), source, kItemsize);
  for (std::int64_t i = 0; i < row.extent; ++i) {
    std::memcpy(target + i * static_cast<std::int64_t>(kItemsize), element.data(), kItemsize);
  }
}

template <std::size_t kItemsize>
void gather(const Row& row, std::byte* target, const std::byte* source) {
  for (std::int64_t i = 0; i < row.extent; ++i) {
    std::memcpy(target + i * static_cast<std::int64_t>(kItemsize), source, kItemsize);
    source += row.source_stride_bytes;
  }
}

template <std::size_t kItemsize>
void scatter(const Row& row, std::byte* target, const std::byte* source) {
  for (std::int64_t i = 0; i < row.extent; ++i) {
    std::memcpy(target, source + i * static_cast<std::int64_t>(kItemsize), kItemsize);
    target += row.target_stride_bytes;
  }
}

template <std::size_t kItemsize>
MoveRow elements_of(const Row& row) {
  constexpr auto kStride = static_cast<std::int64_t>(kItemsize);
  if (row.target_stride_bytes == kStride) {
    if (row.source_stride_bytes == 0) return repeat<kItemsize>;
    if (row.source_stride_bytes == -kStride) return turn_round<kItemsize>;
    return gather<kItemsize>;
  }
  return row.source_stride_bytes == kStride ? scatter<kItemsize> : move_elements<kItemsize>;
}

// ---- Bytes swapped. ----

template <std::size_t kUnit>
void swap_units(std::byte* element, std::size_t itemsize) {
  for (std::size_t at = 0; at < itemsize; at += kUnit) {
    std::reverse(element + at, element + at + kUnit);
  }
}

// Elements in a row without gaps are one long element.
void swap_dense(std::byte* bytes, std::size_t length_bytes, std::size_t unit_bytes) {
  switch (unit_bytes) {
    case 2:
      return swap_units<2>(bytes, length_bytes);
    case 4:
      return swap_units<4>(bytes, length_bytes);
    case 8:
      return swap_units<8>(bytes, length_bytes);
    default:
      break;
  }
  for (std::size_t at = 0; at < length_bytes; at += unit_bytes) {
    std::reverse(bytes + at, bytes + at + unit_bytes);
  }
}

// Element by element: each is there as it shall be before the next one is written.
void move_swapped(const Row& row, std::byte* target, const std::byte* source) {
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

void move_bytes_swapped(const Row& row, std::byte* target, const std::byte* source) {
  const auto length_bytes = static_cast<std::size_t>(row.extent * row.itemsize_bytes);
  std::memcpy(target, source, length_bytes);
  swap_dense(target, length_bytes, static_cast<std::size_t>(row.swap_unit_bytes));
}

MoveRow stream_with(Simd simd) {
  switch (simd) {
    case Simd::kAvx512:
      return stream_bytes<Simd::kAvx512>;
    case Simd::kAvx2:
      return stream_bytes<Simd::kAvx2>;
    case Simd::kPortable:
      break;
  }
  return stream_bytes<Simd::kPortable>;
}

}  // namespace

MoveRow move_row_with(Simd simd, const Row& row) {
  if (row.swap_unit_bytes > 1) return is_dense(row) ? move_bytes_swapped : move_swapped;
  if (is_dense(row)) return row.streams ? stream_with(simd) : move_bytes;
  switch (row.itemsize_bytes) {
    case 1:
      return elements_of<1>(row);
    case 2:
      return elements_of<2>(row);
    case 4:
      return elements_of<4>(row);
    case 8:
      return elements_of<8>(row);
    case 16:
      return elements_of<16>(row);
    default:
      return move_any;
  }
}

void swap_row(const Row& row, std::byte* target, std::int64_t unit_bytes) {
  const auto itemsize = static_cast<std::size_t>(row.itemsize_bytes);
  const auto unit = static_cast<std::size_t>(unit_bytes);
  if (row.target_stride_bytes == row.itemsize_bytes) {
    return swap_dense(target, static_cast<std::size_t>(row.extent) * itemsize, unit);
  }
  for (std::int64_t i = 0; i < row.extent; ++i) {
    swap_dense(target + i * row.target_stride_bytes, itemsize, unit);
  }
}

}  // namespace gridbuf::rows
