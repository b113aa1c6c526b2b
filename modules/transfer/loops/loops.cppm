// gridbuf.transfer.loops: how elements are moved on the host, below the checks of gridbuf.transfer.
//
// `copy_view` and `fill_view` do the work of `copy_elements` and `fill_elements`, for views that
// are sound and share no byte. The rest is what they are made of.
//
// Key decision: paths, threads and kinds of stores differ in speed and in nothing else. Each border
// between them is a constant that a test can set (CopyLimits, FillLimits), so that the smallest
// copy can take every path. docs/explanation/transfers.md says why bands are two lines high and
// when stores are non-temporal.
module;

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

export module gridbuf.transfer.loops;

import gridbuf.layout;
import gridbuf.layout.view;

export namespace gridbuf::loops {

// --- Instruction sets (simd.cc) ------------------------------------------------------------------
//
// Functions are compiled for an instruction set by their `target` attribute, files are not by their
// flags: a file that is compiled for AVX-512 may leave AVX-512 copies of the standard library's
// inline functions behind, which the linker may choose for the whole program.

enum class Simd : std::uint8_t {
  kPortable,  // what every processor of the architecture has (x86-64: SSE2)
  kAvx2,      // 32-byte vectors: AVX2, F16C, FMA, BMI2 (x86-64-v3)
  kAvx512,    // 64-byte vectors: AVX-512 F, BW, DQ, VL (x86-64-v4)
};

/// "portable", "avx2", "avx512".
std::string_view to_string(Simd simd);

/// The setting of that name. Error: kValue, listing the names.
absl::StatusOr<Simd> simd_named(std::string_view name);

/// What this processor has, from portable upwards; never empty.
std::vector<Simd> supported_simd();

/// The variable that chooses at the start of the process. A value that this processor lacks is
/// ignored.
inline constexpr const char* kSimdVariable = "GRIDBUF_SIMD";

/// What is in use: what was set last, else what the variable names, else the best there is.
Simd simd() noexcept;

/// Sets it for the whole process, from the next job on. Error: kValue if this processor lacks it.
absl::Status set_simd(Simd simd);

// --- Two views walked together (walk.cc) ---------------------------------------------------------
//
// Addresses are numbers: nothing here reads memory. Views must be sound (`byte_hull` has a value),
// so no product of extents and strides overflows.

/// One axis of both views.
struct Axis {
  std::int64_t extent;
  std::int64_t target_stride_bytes;
  std::int64_t source_stride_bytes;
};

/// Two views of one shape, outermost axis first; axes of extent 1 are left out.
struct Walk {
  std::byte* target;        // of the first element
  const std::byte* source;  // of the first element
  SmallVec<Axis> axes;
};

constexpr std::int64_t magnitude(std::int64_t stride_bytes) noexcept {
  return stride_bytes < 0 ? -stride_bytes : stride_bytes;
}

/// The walk in row-major order of the index.
Walk make_walk(std::byte* target_block, const StridedView& target, const std::byte* source_block,
               const StridedView& source);

/// Turns and sorts axes so that the target is walked upwards, its smallest stride innermost.
/// Changes the order of writing: only where the target has no byte twice.
void order_by_target(Walk& walk);
/// The same for the source.
void order_by_source(Walk& walk);

/// Merges an axis with the next inner one where one step of it is a whole pass of the inner one on
/// both sides.
void merge_axes(Walk& walk);

/// Orders by the target, merges, and true; or false, and nothing is changed, where two indices of
/// the target may name a common byte (as may_overlap_itself).
bool arrange(Walk& walk, std::int64_t itemsize_bytes);

/// The length of the one run of bytes that an arranged walk is on both sides; nothing if it is more
/// than that.
std::optional<std::int64_t> dense_run_bytes(const Walk& walk, std::int64_t itemsize_bytes);

/// Whether two indices of the view may name a common byte. Sure of "no" for views of ordinary
/// arrays (each stride steps over all that the smaller ones reach); says "maybe" otherwise.
bool may_overlap_itself(const StridedView& view);
/// The same for the target's side of axes.
bool may_overlap_itself(SmallVec<Axis> axes, std::int64_t itemsize_bytes);

struct AddressRange {
  std::uintptr_t begin;
  std::uintptr_t end;
};
AddressRange range_of(const std::byte* block, const StridedView& view);
AddressRange range_of(const std::byte* block, const checked::ByteHull& hull);
bool overlap(const AddressRange& a, const AddressRange& b);

/// Whether every element of the source is the target's element at the same index.
bool same_elements(const std::byte* target_block, const StridedView& target,
                   const std::byte* source_block, const StridedView& source);

/// The same elements without gaps, row-major from offset 0; nothing if they are too many bytes for
/// 64 bits.
std::optional<StridedView> packed(const StridedView& view);

// --- Copies (plan.cc) ----------------------------------------------------------------------------

/// From how many bytes of the target on what is done. Only tests set them.
struct CopyLimits {
  /// Non-temporal stores: for planes where the lines of many columns evict one another, for rows
  /// where the last-level caches could not hold target and source.
  std::int64_t stream_bytes = std::int64_t{1} << 22;
  std::int64_t stream_rows_bytes = std::int64_t{1} << 25;
  /// All threads: a job must be worth the tens of microseconds that starting them takes.
  std::int64_t parallel_bytes = std::int64_t{1} << 22;
  std::int64_t parallel_rows_bytes = std::int64_t{1} << 23;
  /// A task of rows, and what a thread takes at once.
  std::int64_t piece_bytes = std::int64_t{1} << 18;
};

/// Copies every element of `source` to the element of `target` at the same index, as if in
/// row-major order of the index. `swap_unit_bytes`: the bytes of every run of this many are
/// reversed; 0 and 1: none.
///
/// Requires sound views of one shape and item size over at least one element of at least one byte,
/// whose hulls share no byte, and a unit that divides the item size. Cannot fail; takes no memory.
void copy_view(std::byte* target_block, const StridedView& target, const std::byte* source_block,
               const StridedView& source, std::int64_t swap_unit_bytes = 1,
               const CopyLimits& limits = {});

// --- Fills (fill.cc) -----------------------------------------------------------------------------
//
// The element is repeated into a pattern of whole lines once; rows are then filled line by line.
// Rows that are shorter than a line are one longer element. The kind of store is chosen for every
// piece of some 2 MiB:
//
//   lines     vectors. As fast as memset while the target is in the nearer caches.
//   strings   the processor's own loop (x86: rep stos) for elements up to 8 bytes in rows of some
//             kilobytes: it owns lines without fetching them (measured: 1.2 to 1.7 times as fast as
//             vectors in and around the last cache, elsewhere as fast).
//   streams   non-temporal stores, for zeros that the caches could not hold (measured: three times
//             as fast), and for any element in targets many times larger than caches.
//
// Fresh memory is not streamed: the kernel has just zeroed the page through the caches (measured: a
// fifth slower). Whether a piece is fresh the kernel is asked, which takes a microsecond.

/// From how many bytes on what is done. Only tests set them.
struct FillLimits {
  /// All threads, for so many bytes; of elements far apart a part of the page counts.
  std::int64_t parallel_bytes = std::int64_t{1} << 23;
  /// … cut into pieces of about this length.
  std::int64_t piece_bytes = std::int64_t{1} << 21;
  /// Zeros: streamed. The last-level caches of today hold about that.
  std::int64_t stream_zeros_bytes = std::int64_t{1} << 25;
  /// Other elements: streamed (measured: slower at 128 MiB, equal at 512).
  std::int64_t stream_bytes = std::int64_t{1} << 28;
};

/// Writes `element` to every element of `target`, as if in row-major order.
///
/// Requires a sound view of at least one element, element.size() == target.itemsize_bytes ≥ 1, and
/// that no byte of `element` is in the view's hull. Cannot fail; takes no memory.
void fill_view(std::byte* target_block, const StridedView& target,
               std::span<const std::byte> element, const FillLimits& limits = {});

}  // namespace gridbuf::loops

// What the implementation files share, for them and their tests.
export namespace gridbuf::loops {

// --- Tiles (tiles.cc, kernels.inc) ---------------------------------------------------------------
//
// A copy between layouts that disagree about the contiguous dimension is a transposition of many
// planes: along one axis the target is dense, along the other the source. A band of such a plane is
// as many rows as fill two lines of the target, and it is swept along the source. The source is
// then a handful of streams, which processors prefetch, and every line of the target is written
// whole, at once (non-temporally, if the caches cannot hold the target). So power-of-two strides,
// at which all lines of a column share one cache set, do no harm. Squares of elements are
// transposed in registers (HPTT's idea, arXiv 1704.04374).
//
// In the caches, lines at power-of-two distances evict one another before a square is done. There
// squares are of whole lines, and follow one another through several planes, or along the plane's
// longer side.
//
// Where rows of the target begin in the middle of a line, the band goes by way of a scratch: a line
// that holds elements of two bands is written by the band that holds its first byte, which reads
// the rows after it, too. Bands can be moved in any order and by any thread.

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

/// The bands that suit the plane.
Bands bands_of(const Plane& plane);

using MoveBand = void (*)(const Plane& plane, const Band& band);

/// The function that moves a band. Streaming bands that share lines must be all those of bands_of.
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
/// Copies them by ordinary stores: rows of at least a line, so short that a call of memcpy shows.
MoveDenseRows copy_rows_with(Simd simd);

/// Orders this thread's non-temporal stores before later ones.
void end_stream();

// --- Rows (rows.cc) ------------------------------------------------------------------------------
//
// A row is dense on both sides, or turned round, or repeated from one element, or apart on either
// side. Rows are moved from their first element to their last: where elements of a target share
// bytes, the last one wins.

/// Groups of rows of elements, all at equal distances. The two sides share no byte.
struct Rows {
  std::int64_t extent;
  std::int64_t itemsize_bytes;
  std::int64_t target_stride_bytes;
  std::int64_t source_stride_bytes;
  std::int64_t swap_unit_bytes = 1;  // the bytes of every run of so many are reversed
  bool streams = false;              // dense rows, past the caches; end_stream() ends it
  std::int64_t count = 1;            // of rows, and from one to the next:
  std::int64_t target_step_bytes = 0;
  std::int64_t source_step_bytes = 0;
  std::int64_t groups = 1;  // of so many rows, and from one to the next:
  std::int64_t target_group_bytes = 0;
  std::int64_t source_group_bytes = 0;
};

/// Moves rows, one after the other; `target` and `source` are the first elements.
using MoveRows = void (*)(const Rows& rows, std::byte* target, const std::byte* source);

/// The function for rows that differ from these in `count` and `groups` alone, or are single ones
/// of another `extent`.
MoveRows move_rows_with(Simd simd, const Rows& rows);

/// Reverses the bytes of every run of `unit_bytes` in the first of the target's rows.
void swap_row(const Rows& rows, std::byte* target, std::int64_t unit_bytes);

// --- Plans (plan.cc) -----------------------------------------------------------------------------
//
// A plan is one of two kinds, and the loops around it:
//
//   rows     the layouts agree about the innermost dimension, or nothing may be reordered: rows,
//            in the order in which the target is laid out.
//   planes   the target is dense along one dimension, the source's smallest stride belongs to
//            another: planes of those two, in bands.
//
// The loops are one counted space: a task (a piece of a row; a band of a plane, or a part of it) is
// a number. Any thread can run any range of numbers; contiguous ranges keep a thread's pages
// together. Planes are visited in the order of the source, because bands read.

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
  Rows rows = {};    // of rows: the first ones
  Plane plane = {};  // of planes: the first one
  Bands bands = {};
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

/// Requires a walk as copy_view does: one that `arrange` has arranged (kAny), or not (kAsIndexed).
CopyPlan make_plan(Walk walk, std::int64_t itemsize_bytes, std::int64_t swap_unit_bytes,
                   Order order, const CopyLimits& limits);

/// Runs the tasks [begin, end).
void run(const CopyPlan& plan, Simd simd, std::int64_t begin, std::int64_t end);

}  // namespace gridbuf::loops
