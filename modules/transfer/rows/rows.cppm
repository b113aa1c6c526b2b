// gridbuf.transfer.rows: one row of elements, from any stride to any other.
//
// What is left of a copy when two layouts agree about the innermost dimension, and of every copy
// that must be done element after element. A row is dense on both sides (bytes, for memcpy or, if
// the caches could not hold the target, for stores past them), or turned round, or repeated from one
// element, or apart on either side. Elements may be of any length; those of 1, 2, 4, 8 and 16 bytes
// are single loads and stores.
//
// Rows are moved from their first element to their last, each element after the other: where
// elements of a target share bytes, the last one wins.
module;

#include <cstddef>
#include <cstdint>

export module gridbuf.transfer.rows;

import gridbuf.transfer.simd;

export namespace gridbuf::rows {

/// Elements at equal distances on either side, which share no byte with one another.
struct Row {
  std::int64_t extent;
  std::int64_t itemsize_bytes;
  std::int64_t target_stride_bytes;
  std::int64_t source_stride_bytes;
  std::int64_t swap_unit_bytes = 1;  // the bytes of every run of so many are reversed
  bool streams = false;              // dense rows, past the caches; tiles::end_stream() ends it
};

using MoveRow = void (*)(const Row& row, std::byte* target, const std::byte* source);

/// The function for rows of that kind: all but `extent` must be those of the rows it gets.
MoveRow move_row_with(Simd simd, const Row& row);

/// Reverses the bytes of every run of `unit_bytes` in a row of the target.
void swap_row(const Row& row, std::byte* target, std::int64_t unit_bytes);

}  // namespace gridbuf::rows
