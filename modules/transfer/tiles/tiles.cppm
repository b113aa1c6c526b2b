// gridbuf.transfer.tiles: planes whose rows become columns, at the speed of memory.
//
// A copy between layouts that disagree about the contiguous dimension is a transposition of many
// planes: along one axis the target is dense, along the other the source. This module moves a band
// of such a plane: a few rows along the source's dense axis, all of its columns.
//
// The key choice: a band is as many rows as fill two lines of the target, and it is swept along the
// source. The source is then read as a handful of streams, which processors prefetch by themselves,
// and every line of the target is written whole, at once, past the caches (for a target that the
// caches cannot hold; otherwise by ordinary stores). No line is fetched to be overwritten, and none
// is touched twice, so power-of-two strides, at which all lines of a column share one cache set, do
// no harm. Squares of elements are transposed in registers (HPTT's idea, arXiv 1704.04374), with
// vectors as wide as gridbuf.transfer.simd says.
//
// A copy that stays in the caches is another matter: there lines at power-of-two distances throw
// out one another before a square is done, and nothing fetches ahead what lies so far apart. So
// squares are of whole lines, and follow one another where every row of a square is a stream of its
// own: through several planes, the same square of each, or else along the plane's longer side.
//
// Where rows of the target begin in the middle of a line, the band goes by way of a scratch of some
// kilobytes: lines of the target then hold elements of two bands; each is written by the band that
// holds its first byte, which reads the rows after it, too. Bands depend on nothing, so they can be
// moved in any order and by any thread. Elements of 1, 2, 4, 8 and 16 bytes are transposed in
// registers, others moved one by one, through the same scratch.
module;

#include <cstddef>
#include <cstdint>

export module gridbuf.transfer.tiles;

import gridbuf.transfer.simd;

export namespace gridbuf::tiles {

/// The length of a cache line, and of what memory is written in.
inline constexpr std::int64_t kLineBytes = 64;

/// Row r, column c of the source is element r of the target's column c. The two share no byte.
struct Plane {
  std::byte* target;        // of row 0, column 0
  const std::byte* source;  // of row 0, column 0
  std::int64_t itemsize_bytes;
  std::int64_t rows;
  std::int64_t columns;
  std::int64_t target_row_stride_bytes;  // the item size, if `streams`
  std::int64_t target_column_stride_bytes;
  std::int64_t source_row_stride_bytes;
  std::int64_t source_column_stride_bytes;
  bool streams;                     // past the caches; end_stream() ends it
  const std::byte* next = nullptr;  // what is read after a band, if that is known: a hint
  /// Of such planes at equal distances, moved square by square: the same square of all of them,
  /// then the next. More than one only where nothing streams.
  std::int64_t count = 1;
  std::int64_t target_step_bytes = 0;
  std::int64_t source_step_bytes = 0;
};

/// Some of its rows: [row, row + rows).
struct Band {
  std::int64_t row;
  std::int64_t rows;
};

/// How a plane is cut into bands.
struct Bands {
  std::int64_t first_rows;  // up to the begin of a line, if all columns have it at the same row
  std::int64_t rows;        // of all others; the last may be shorter
  std::int64_t count;
  bool share_lines;  // a band reads rows of the next one

  Band operator[](std::int64_t index) const;
  std::int64_t plane_rows;
};

/// The bands that suit the plane: two lines of its target, one where the source's rows lie a
/// multiple of pages apart; in the caches, if the plane is higher than wide, many.
Bands bands_of(const Plane& plane);

using MoveBand = void (*)(const Plane& plane, const Band& band);

/// The function that moves a band with those instructions. Streaming bands that share lines must be
/// those of bands_of, all of them.
MoveBand move_band_with(Simd simd);

/// Groups at equal distances of dense rows at equal distances.
struct DenseRows {
  std::int64_t length_bytes;  // of each
  std::int64_t count;         // of a group, and from one to the next:
  std::int64_t target_step_bytes;
  std::int64_t source_step_bytes;
  std::int64_t groups = 1;  // and from one to the next:
  std::int64_t target_group_bytes = 0;
  std::int64_t source_group_bytes = 0;
};

using MoveDenseRows = void (*)(const DenseRows& rows, std::byte* target, const std::byte* source);

/// Copies them, each past the caches from its first whole line to its last.
MoveDenseRows stream_rows_with(Simd simd);

/// Copies them by ordinary stores: rows of at least a line, and so few that calling memcpy for each
/// would show.
MoveDenseRows copy_rows_with(Simd simd);

/// What this thread has streamed is there for others.
void end_stream();

}  // namespace gridbuf::tiles
