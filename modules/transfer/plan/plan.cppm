// gridbuf.transfer.plan: what a copy does in which order, decided before a byte moves.
//
// A plan is made from two views walked together (gridbuf.transfer.walk). It is one of two kinds:
//
//   rows     the layouts agree about the innermost dimension, or nothing may be reordered: rows
//            (gridbuf.transfer.rows), in the order in which the target lies.
//   planes   the target is dense along one dimension, the source's smallest stride belongs to
//            another: planes of those two, in bands (gridbuf.transfer.tiles).
//
// and the loops around it. The key choice: the loops are one counted space. A task (a piece of a
// row; a band of a plane, or a part of it) is a number, any range of numbers can be run by any
// thread, and contiguous ranges are what keeps a thread's pages together. Planes are visited in the
// order of the source, because bands read: what is written goes straight to memory, in any order.
//
// Dimensions are fused where both views allow it. Dense rows that are shorter than a line are made
// the elements of the copy (24 bytes for three doubles), and what then lies around them is planned
// as for any other element.
//
// The model of the machine is small, because measuring it showed that little matters: lines of 64
// bytes, written whole; two of them a band (tiles); sources read as streams; parts of a band that
// share lines with the next one short enough to find them in the second-level cache; and a target
// that the caches could not hold is written past them.
module;

#include <cstddef>
#include <cstdint>

export module gridbuf.transfer.plan;

import gridbuf.layout;
import gridbuf.transfer.rows;
import gridbuf.transfer.simd;
import gridbuf.transfer.tiles;
import gridbuf.transfer.walk;

export namespace gridbuf::plan {

/// From how many bytes of the target on what is done. Tests set them low; nobody else has a reason.
/// Rows have borders of their own: a processor moves them at the speed of its caches by itself.
struct CopyLimits {
  /// Stores that pass the caches: for planes where the lines of many columns begin to throw out one
  /// another, for rows where even the last-level caches could not hold a target and its source.
  std::int64_t stream_bytes = std::int64_t{1} << 22;
  std::int64_t stream_rows_bytes = std::int64_t{1} << 25;
  /// All threads: a job must be worth the tens of microseconds that starting them takes.
  std::int64_t parallel_bytes = std::int64_t{1} << 22;
  std::int64_t parallel_rows_bytes = std::int64_t{1} << 23;
  /// A task of rows, and what a thread takes at once.
  std::int64_t piece_bytes = std::int64_t{1} << 18;

  friend constexpr bool operator==(const CopyLimits&, const CopyLimits&) noexcept = default;
};

enum class Order : std::uint8_t {
  kAny,        // elements of the target share no byte
  kAsIndexed,  // they may: each is written after those before it
};

/// What a loop counts.
enum class Count : std::uint8_t {
  kSteps,    // of both sides, by the loop's strides
  kBands,    // of the plane
  kColumns,  // parts of a band: this many columns each
  kPieces,   // of a row: this many elements each
  kRows,     // of rows: this many each
};

struct Loop {
  Count count;
  std::int64_t extent;
  std::int64_t target_stride_bytes = 0;
  std::int64_t source_stride_bytes = 0;
};

struct CopyPlan {
  bool moves_planes = false;
  rows::Rows rows = {};     // of rows: the first ones
  tiles::Plane plane = {};  // of planes: the first one
  tiles::Bands bands = {};
  std::int64_t part = 0;             // elements of a row, rows, or columns of a band, in a task
  std::int64_t swap_unit_bytes = 1;  // of what has been moved
  std::byte* target = nullptr;       // of the first row or plane
  const std::byte* source = nullptr;
  SmallVec<Loop> loops = {};  // outermost first
  std::int64_t tasks = 1;     // the product of their extents
  std::int64_t tasks_of_a_piece = 1;
  bool parallel = false;
  bool streams = false;
};

/// Requires a walk over at least one element of at least one byte, between memory that shares no
/// byte: one that walk::arrange has arranged (kAny), or not (kAsIndexed).
CopyPlan make_plan(walk::Walk walk, std::int64_t itemsize_bytes, std::int64_t swap_unit_bytes,
                   Order order, const CopyLimits& limits);

/// Runs the tasks [begin, end).
void run(const CopyPlan& plan, Simd simd, std::int64_t begin, std::int64_t end);

}  // namespace gridbuf::plan
