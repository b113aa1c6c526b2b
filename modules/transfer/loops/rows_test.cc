#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "gtest/gtest.h"

import gridbuf.transfer.loops;

namespace gridbuf::loops {
namespace {

// Copies every second number of one array to a second array.
void copy_every_second(float* target, const float* source, std::int64_t count) {
  const Rows row{
      .extent = count, .itemsize_bytes = 4, .target_stride_bytes = 4, .source_stride_bytes = 8};
  move_rows_with(simd(), row)(row, reinterpret_cast<std::byte*>(target),
                              reinterpret_cast<const std::byte*>(source));
}

TEST(Rows, TakeEverySecondElement) {
  const std::array<float, 6> source{1, 2, 3, 4, 5, 6};
  std::array<float, 3> target{};
  copy_every_second(target.data(), source.data(), 3);
  EXPECT_EQ(target, (std::array<float, 3>{1, 3, 5}));
}

std::vector<std::byte> counted(std::size_t length) {
  std::vector<std::byte> bytes(length);
  for (std::size_t i = 0; i < length; ++i) bytes[i] = static_cast<std::byte>(i * 7 % 251);
  return bytes;
}

// Moves a row from the middle of one block to the middle of another, and compares all bytes.
void expect_moved(const Rows& row, Simd path) {
  constexpr std::int64_t kMiddle = 6000;
  const std::vector<std::byte> source = counted(12000);
  std::vector<std::byte> target(12000, std::byte{99});
  std::vector<std::byte> expected = target;
  for (std::int64_t n = 0; n < row.count * row.extent; ++n) {
    const std::int64_t i = n % row.extent;
    const std::int64_t step = n / row.extent;
    const auto from =
        source.begin() + kMiddle + i * row.source_stride_bytes + step * row.source_step_bytes;
    const auto to =
        expected.begin() + kMiddle + i * row.target_stride_bytes + step * row.target_step_bytes;
    std::copy_n(from, row.itemsize_bytes, to);
    for (std::int64_t at = 0; at < row.itemsize_bytes && row.swap_unit_bytes > 1;
         at += row.swap_unit_bytes) {
      std::reverse(to + at, to + at + row.swap_unit_bytes);
    }
  }
  move_rows_with(path, row)(row, target.data() + kMiddle, source.data() + kMiddle);
  ASSERT_EQ(target, expected) << row.extent << " × " << row.itemsize_bytes << ", strides "
                              << row.target_stride_bytes << ", " << row.source_stride_bytes;
}

TEST(Rows, AreRightForAllStridesAndLengths) {
  for (const Simd path : supported_simd()) {
    for (const std::int64_t itemsize : {1, 2, 3, 4, 8, 12, 16, 24}) {
      for (const std::int64_t extent : {0, 1, 2, 3, 7, 8, 17, 40, 100}) {
        for (const std::int64_t target : {itemsize, itemsize + 3, 2 * itemsize, std::int64_t{0}}) {
          for (const std::int64_t source :
               {itemsize, -itemsize, std::int64_t{0}, 2 * itemsize, -itemsize - 1}) {
            expect_moved({extent, itemsize, target, source}, path);
            if (itemsize % 4 == 0) expect_moved({extent, itemsize, target, source, 4}, path);
            if (itemsize % 2 == 0) expect_moved({extent, itemsize, target, source, 2}, path);
            const bool dense = target == itemsize && source == itemsize;
            if (dense) expect_moved({extent, itemsize, target, source, 1, true}, path);
          }
        }
      }
    }
  }
}

TEST(Rows, FollowOneAnother) {
  for (const Simd path : supported_simd()) {
    for (const std::int64_t itemsize : {1, 4, 8, 12}) {
      for (const std::int64_t extent : {1, 2, 3, 5, 9, 16, 17, 33, 65, 130}) {
        const std::int64_t row_bytes = extent * itemsize;
        if (row_bytes > 1000) continue;
        Rows rows{extent, itemsize, itemsize, itemsize};
        rows.count = 3;
        rows.target_step_bytes = row_bytes + 5;
        rows.source_step_bytes = -row_bytes - 1;
        expect_moved(rows, path);
        rows.source_stride_bytes = 0;
        expect_moved(rows, path);
        rows.target_stride_bytes = itemsize + 1;
        rows.target_step_bytes = 2000;
        expect_moved(rows, path);
      }
    }
  }
}

TEST(SwapRow, ReversesTheBytesOfEachUnitInPlace) {
  std::vector<std::byte> block = counted(64);
  std::vector<std::byte> expected = block;
  for (const int at : {0, 4, 24, 28})
    std::reverse(expected.begin() + at, expected.begin() + at + 4);
  swap_row({.extent = 2, .itemsize_bytes = 8, .target_stride_bytes = 24, .source_stride_bytes = 0},
           block.data(), 4);
  EXPECT_EQ(block, expected);
}

}  // namespace
}  // namespace gridbuf::loops
