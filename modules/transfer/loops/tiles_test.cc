#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include "gtest/gtest.h"

import gridbuf.transfer.loops;

namespace gridbuf::loops {
namespace {

// Transposes a matrix of doubles, band by band. Other threads could move some bands.
void transpose(double* target, const double* source, std::int64_t rows, std::int64_t columns) {
  const Plane plane{.target = reinterpret_cast<std::byte*>(target),
                    .source = reinterpret_cast<const std::byte*>(source),
                    .itemsize_bytes = 8,
                    .rows = rows,
                    .columns = columns,
                    .target_row_stride_bytes = 8,
                    .target_column_stride_bytes = 8 * rows,
                    .source_row_stride_bytes = 8 * columns,
                    .source_column_stride_bytes = 8,
                    .streams = true};
  const Bands bands = bands_of(plane);
  const MoveBand move_band = move_band_with(simd());
  for (std::int64_t i = 0; i < bands.count; ++i) move_band(plane, bands[i]);
  end_stream();
}

TEST(Tiles, Transpose) {
  for (const auto [rows, columns] : {std::array{37, 29}, std::array{64, 48}, std::array{1, 9}}) {
    std::vector<double> source(static_cast<std::size_t>(rows * columns));
    for (std::size_t i = 0; i < source.size(); ++i) source[i] = static_cast<double>(i);
    std::vector<double> target(source.size());
    transpose(target.data(), source.data(), rows, columns);
    for (int row = 0; row < rows; ++row) {
      for (int column = 0; column < columns; ++column) {
        ASSERT_EQ(target[static_cast<std::size_t>(column * rows + row)],
                  source[static_cast<std::size_t>(row * columns + column)]);
      }
    }
  }
}

struct Case {
  std::int64_t itemsize;
  std::int64_t rows;
  std::int64_t columns;
  std::int64_t target_offset;
  std::int64_t target_gap;
  std::int64_t source_gap;
};

// Moves all bands in reverse order, and compares every byte of the target's block.
void expect_moved(const Case& at, Simd path, bool streams) {
  const std::int64_t target_stride = at.rows * at.itemsize + at.target_gap;
  const std::int64_t source_stride = at.columns * at.itemsize + at.source_gap;
  std::vector<std::byte> source(static_cast<std::size_t>(at.rows * source_stride + 64));
  for (std::size_t i = 0; i < source.size(); ++i) source[i] = static_cast<std::byte>(i * 7 % 251);
  std::vector<std::byte> target(
      static_cast<std::size_t>(at.columns * target_stride + at.target_offset + 128), std::byte{99});
  Plane plane{.target = target.data() + at.target_offset,
              .source = source.data(),
              .itemsize_bytes = at.itemsize,
              .rows = at.rows,
              .columns = at.columns,
              .target_row_stride_bytes = at.itemsize,
              .target_column_stride_bytes = target_stride,
              .source_row_stride_bytes = source_stride,
              .source_column_stride_bytes = at.itemsize,
              .streams = streams};
  std::vector<std::byte> expected = target;
  for (std::int64_t row = 0; row < at.rows; ++row) {
    for (std::int64_t column = 0; column < at.columns; ++column) {
      std::memcpy(expected.data() + at.target_offset + column * target_stride + row * at.itemsize,
                  source.data() + row * source_stride + column * at.itemsize,
                  static_cast<std::size_t>(at.itemsize));
    }
  }
  if (streams) {
    const Bands bands = bands_of(plane);
    for (std::int64_t i = bands.count - 1; i >= 0; --i) move_band_with(path)(plane, bands[i]);
    end_stream();
  } else {
    const Blocks blocks = blocks_of(plane, at.rows % 2 == 0 ? 1 : 20'000);
    plane.nest = blocks.nest;
    for (std::int64_t i = blocks.cuts[1].count - 1; i >= 0; --i) {
      const Part columns = blocks.cuts[1][i];
      Plane part = plane;
      part.columns = columns.length;
      part.target += columns.begin * target_stride;
      part.source += columns.begin * at.itemsize;
      for (std::int64_t j = blocks.cuts[0].count - 1; j >= 0; --j) {
        move_band_with(path)(part, blocks.cuts[0][j]);
      }
    }
  }
  ASSERT_EQ(target, expected) << to_string(path) << ", " << at.itemsize << " bytes, " << at.rows
                              << " × " << at.columns << ", offset " << at.target_offset;
}

TEST(Tiles, AreRightAtEveryEdge) {
  for (const Simd path : supported_simd()) {
    for (const std::int64_t itemsize : {1, 2, 4, 8, 16, 3, 12, 40}) {
      for (const std::int64_t rows : {1, 7, 8, 9, 16, 17, 31, 33, 64, 65, 130}) {
        for (const std::int64_t columns : {1, 3, 8, 15, 32, 33, 65}) {
          for (const std::int64_t offset : {0, 1, 24}) {
            expect_moved({itemsize, rows, columns, offset, offset == 0 ? 64 : 5, 3}, path, true);
            expect_moved({itemsize, rows, columns, offset, 5, 0}, path, false);
          }
        }
      }
    }
  }
}

// Lines of all columns of the target are in one cache set.
TEST(Tiles, AreRightByScratch) {
  for (const Simd path : supported_simd()) {
    for (const std::int64_t itemsize : {1, 2, 4}) {
      for (const std::int64_t rows : {63, 64, 65, 100, 1023}) {
        for (const std::int64_t columns : {64, 65, 100}) {
          const Case at{itemsize, rows, columns, rows % 3 * 8, 4096 - rows * itemsize, 3};
          if (at.target_gap < 0) continue;
          expect_moved(at, path, false);
        }
      }
    }
  }
}

TEST(Tiles, AreRightAlongLongSidesInTheCaches) {
  for (const Simd path : supported_simd()) {
    for (const std::int64_t itemsize : {1, 2, 4, 8, 16, 12}) {
      expect_moved({itemsize, 600, 9, 0, 5, 3}, path, false);
      expect_moved({itemsize, 9, 600, 24, 5, 3}, path, false);
      expect_moved({itemsize, 257, 257, 0, 64, 1}, path, false);
    }
  }
}

// Cache lines begin at one row in all columns, but not at the first: the first band ends there.
TEST(Tiles, BandsBeginWithLines) {
  alignas(kLineBytes) std::array<std::byte, 4096> block;
  const Plane plane{.target = block.data() + 40,
                    .source = nullptr,
                    .itemsize_bytes = 8,
                    .rows = 100,
                    .columns = 100,
                    .target_row_stride_bytes = 8,
                    .target_column_stride_bytes = 1024,
                    .source_row_stride_bytes = 808,
                    .source_column_stride_bytes = 8,
                    .streams = true};
  const Bands bands = bands_of(plane);
  EXPECT_EQ(bands[0].length, 3 + 16);
  EXPECT_EQ(bands[1].begin, 19);
  EXPECT_FALSE(bands.share_lines);
  std::int64_t rows = 0;
  for (std::int64_t i = 0; i < bands.count; ++i) rows += bands[i].length;
  EXPECT_EQ(rows, plane.rows);
}

// Parts of rows begin at cache lines of the target, parts of columns at those of the source. No
// part is shorter than a square.
TEST(Tiles, BlocksBeginWithLines) {
  alignas(kLineBytes) std::array<std::byte, 64> target;
  alignas(kLineBytes) std::array<std::byte, 64> source;
  Plane plane{.target = target.data() + 40,
              .source = source.data() + 16,
              .itemsize_bytes = 8,
              .rows = 100,
              .columns = 60,
              .target_row_stride_bytes = 8,
              .target_column_stride_bytes = 128000,
              .source_row_stride_bytes = 6400,
              .source_column_stride_bytes = 8,
              .streams = false,
              .count = 10,
              .target_step_bytes = 12800,
              .source_step_bytes = 640};
  Blocks blocks = blocks_of(plane, 8 * 512);
  // The planes are nearest to each other on both sides, columns furthest.
  EXPECT_EQ(blocks.nest, (Nest{BlockSide::kColumns, BlockSide::kRows, BlockSide::kPlanes}));
  const auto [rows, columns, planes] = blocks.cuts;
  EXPECT_EQ(planes[0].length, 10);  // 8 and the rest
  EXPECT_EQ(rows[0].length, 3 + 8);
  EXPECT_EQ(rows[1].begin, 11);
  EXPECT_EQ(columns[0].length, 6 + 8);
  for (const Cut& cut : {rows, columns}) {
    std::int64_t end = 0;
    for (std::int64_t i = 0; i < cut.count; ++i) {
      EXPECT_EQ(cut[i].begin, end);
      EXPECT_GE(cut[i].length, 8);
      end += cut[i].length;
    }
    EXPECT_EQ(end, cut.extent);
  }
  // Rows of the target that are not whole lines are written one after another.
  plane.target_column_stride_bytes += 8;
  blocks = blocks_of(plane, 4 * 512);
  EXPECT_EQ(blocks.nest, (Nest{BlockSide::kColumns, BlockSide::kPlanes, BlockSide::kRows}));
  EXPECT_EQ(blocks.cuts[0][0].length, 4 * 8);
}

// A plane smaller than a square is one block.
TEST(Tiles, ASmallPlaneIsOneBlock) {
  const Plane plane{.target = nullptr,
                    .source = nullptr,
                    .itemsize_bytes = 1,
                    .rows = 5,
                    .columns = 70,
                    .target_row_stride_bytes = 1,
                    .target_column_stride_bytes = 5,
                    .source_row_stride_bytes = 70,
                    .source_column_stride_bytes = 1,
                    .streams = false};
  for (const Cut& cut : blocks_of(plane, 1).cuts) {
    EXPECT_EQ(cut.count, 1);
    EXPECT_EQ(cut[0].length, cut.extent);
  }
}

// Bands are computed for one plane; the next plane may begin at another place of a cache line.
TEST(Tiles, BandsOfAnotherPlaneAreAsGood) {
  constexpr std::int64_t kRows = 257;
  constexpr std::int64_t kStride = 4160;
  alignas(kLineBytes) static std::array<std::byte, 40 * kStride> block;
  std::vector<std::byte> source(kRows * 40 * 16);
  for (std::size_t i = 0; i < source.size(); ++i) source[i] = static_cast<std::byte>(i % 251);
  for (const Simd path : supported_simd()) {
    for (const std::int64_t first : {0, 16, 48}) {
      for (const std::int64_t second : {0, 16, 32}) {
        block.fill(std::byte{99});
        Plane plane{.target = block.data() + first,
                    .source = source.data(),
                    .itemsize_bytes = 16,
                    .rows = kRows,
                    .columns = 39,
                    .target_row_stride_bytes = 16,
                    .target_column_stride_bytes = kStride,
                    .source_row_stride_bytes = 40 * 16,
                    .source_column_stride_bytes = 16,
                    .streams = true};
        const Bands bands = bands_of(plane);
        plane.target = block.data() + second;
        for (std::int64_t i = 0; i < bands.count; ++i) move_band_with(path)(plane, bands[i]);
        end_stream();
        for (std::int64_t row = 0; row < kRows; ++row) {
          for (std::int64_t column = 0; column < 39; ++column) {
            ASSERT_EQ(std::memcmp(plane.target + column * kStride + row * 16,
                                  source.data() + row * 640 + column * 16, 16),
                      0)
                << to_string(path) << ", row " << row << ", column " << column;
          }
        }
      }
    }
  }
}

TEST(DenseRows, WriteWhatTheyAreAskedAndNoMore) {
  std::vector<std::byte> source(2200);
  for (std::size_t i = 0; i < source.size(); ++i) source[i] = static_cast<std::byte>(i % 251);
  for (const Simd path : supported_simd()) {
    for (const std::int64_t length : {0, 1, 63, 64, 65, 500}) {
      for (std::int64_t offset = 0; offset < 70; ++offset) {
        const Rows rows{.extent = length,
                        .itemsize_bytes = 1,
                        .target_stride_bytes = 1,
                        .source_stride_bytes = 1,
                        .count = 3,
                        .target_step_bytes = length + offset % 3,
                        .source_step_bytes = length + 7,
                        .groups = 2,
                        .target_group_bytes = 3 * length + 20,
                        .source_group_bytes = length + 30};
        std::vector<std::byte> target(3200, std::byte{99});
        std::vector<std::byte> expected = target;
        for (std::int64_t group = 0; group < rows.groups; ++group) {
          for (std::int64_t row = 0; row < rows.count; ++row) {
            std::copy_n(
                source.begin() + 5 + group * rows.source_group_bytes + row * rows.source_step_bytes,
                length,
                expected.begin() + offset + group * rows.target_group_bytes +
                    row * rows.target_step_bytes);
          }
        }
        const std::vector<std::byte> untouched = target;
        stream_rows_with(path)(rows, target.data() + offset, source.data() + 5);
        end_stream();
        ASSERT_EQ(target, expected) << to_string(path) << " " << length << " at " << offset;
        if (length < kLineBytes) continue;
        target = untouched;
        copy_rows_with(path)(rows, target.data() + offset, source.data() + 5);
        ASSERT_EQ(target, expected) << to_string(path) << " " << length << " at " << offset;
      }
    }
  }
}

}  // namespace
}  // namespace gridbuf::loops
