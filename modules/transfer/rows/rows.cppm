// gridbuf.transfer.rows: rows of elements, from any stride to any other.
//
// What is left of a copy when two layouts agree about the innermost dimension, and of every copy
// that must be done element after element. A row is dense on both sides (bytes, for memcpy or, if
// the caches could not hold the target, for stores past them), or turned round, or repeated from
// one element, or apart on either side. Elements may be of any length; those of 1, 2, 4, 8 and 16
// bytes are single loads and stores.
//
// Rows are moved from their first element to their last, each element after the other: where
// elements of a target share bytes, the last one wins.
module;

#include <cstddef>
#include <cstdint>

export module gridbuf.transfer.rows;

import gridbuf.transfer.simd;

export namespace gridbuf::rows {

/// Groups at equal distances of rows at equal distances, of elements at equal distances. The two
/// sides share no byte.
struct Rows {
  std::int64_t extent;
  std::int64_t itemsize_bytes;
  std::int64_t target_stride_bytes;
  std::int64_t source_stride_bytes;
  std::int64_t swap_unit_bytes = 1;  // the bytes of every run of so many are reversed
  bool streams = false;              // dense rows, past the caches; tiles::end_stream() ends it
  std::int64_t count = 1;            // of rows, and from one to the next:
  std::int64_t target_step_bytes = 0;
  std::int64_t source_step_bytes = 0;
  std::int64_t groups = 1;  // of so many rows, and from one to the next:
  std::int64_t target_group_bytes = 0;
  std::int64_t source_group_bytes = 0;
};

/// Moves rows, one after the other; `target` and `source` are the first elements.
using MoveRows = void (*)(const Rows& rows, std::byte* target, const std::byte* source);

/// The function for rows of that kind: the rows it gets differ in `count` and `groups` alone, or
/// are single ones of another `extent`.
MoveRows move_rows_with(Simd simd, const Rows& rows);

/// Reverses the bytes of every run of `unit_bytes` in the first of the target's rows.
void swap_row(const Rows& rows, std::byte* target, std::int64_t unit_bytes);

}  // namespace gridbuf::rows
