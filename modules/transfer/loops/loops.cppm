// gridbuf.transfer.loops: the loops of gridbuf.transfer on the host, without checks of arguments.
//
// `copy_view` and `fill_view` do the work of `copy_elements` and `fill_elements`, for sound views
// that do not share bytes. The other functions are their parts.
//
// Key decision: paths, threads and kinds of stores differ only in speed. Each threshold is a value
// that a test can set (CopyLimits, FillLimits), so that the smallest copy can take every path.
// docs/explanation/transfers.md explains why bands are two lines high and when stores are
// non-temporal.
module;

#include <array>
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
// The `target` attribute compiles single functions for an instruction set; compiler flags do not. A
// file compiled with AVX-512 flags may contain AVX-512 copies of the standard library's inline
// functions, which the linker may choose for the whole program.

/// Instruction sets that loops are compiled for.
enum class Simd : std::uint8_t {
  kPortable,  // on every processor of the architecture (x86-64: SSE2, aarch64: NEON)
  kAvx2,      // 32-byte vectors: AVX2, F16C, FMA, BMI2 (x86-64-v3)
  kAvx512,    // 64-byte vectors: AVX-512 F, BW, DQ, VL (x86-64-v4)
  kNeon,      // pairs of 16-byte vectors: aarch64
};

/// "portable", "avx2", "avx512", "neon".
std::string_view to_string(Simd simd);

/// The setting of that name. Error: kValue, listing the names.
absl::StatusOr<Simd> simd_named(std::string_view name);

/// The instruction sets of this processor, from kPortable upwards.
std::vector<Simd> supported_simd();

/// The variable that sets it at the start of the process. An instruction set that this processor
/// lacks is ignored.
inline constexpr const char* kSimdVariable = "GRIDBUF_SIMD";

/// The instruction set in use: the last one set, else that of the variable, else the best of this
/// processor.
Simd simd() noexcept;

/// Sets the instruction set for the whole process, from the next job on. Error: kValue if this
/// processor lacks it.
absl::Status set_simd(Simd simd);

// --- Two views walked together (walk.cc) ---------------------------------------------------------
//
// Addresses are numbers: these functions do not read memory. Views must be sound (`byte_hull` has a
// value), so no product of extents and strides overflows.

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

/// The indices of axes in row-major order, from that number on, and the addresses of their
/// elements.
class Odometer {
 public:
  Odometer(const SmallVec<Axis>& axes, std::byte* target, const std::byte* source,
           std::int64_t number = 0);

  std::byte* target() const { return target_; }
  const std::byte* source() const { return source_; }
  std::int64_t operator[](int axis) const { return index_[axis]; }
  /// Goes to the next index. False after the last, and then at the first again.
  bool next();

 private:
  void move(const Axis& axis, std::int64_t steps);

  const SmallVec<Axis>& axes_;
  std::byte* target_;
  const std::byte* source_;
  Extents index_;
};

/// The stride without its sign.
constexpr std::int64_t magnitude(std::int64_t stride_bytes) noexcept {
  return stride_bytes < 0 ? -stride_bytes : stride_bytes;
}

/// The walk in row-major order of the index.
Walk make_walk(std::byte* target_block, const StridedView& target, const std::byte* source_block,
               const StridedView& source);

/// Reverses and sorts axes so that the target's addresses grow, with the smallest stride innermost.
/// This changes the order of writes, so elements of the target must not share bytes.
void order_by_target(Walk& walk);
/// As order_by_target, for the source.
void order_by_source(Walk& walk);

/// Merges an axis with the next inner axis if, on both sides, its stride is the length of the inner
/// axis.
void merge_axes(Walk& walk);

/// Orders by the target, merges axes and returns true. If elements of the target may share bytes
/// (see may_overlap_itself), returns false without a change.
bool arrange(Walk& walk, std::int64_t itemsize_bytes);

/// The length of an arranged walk if it is one run of bytes on both sides; else nothing.
std::optional<std::int64_t> dense_run_bytes(const Walk& walk, std::int64_t itemsize_bytes);

/// Whether elements of the view may share bytes. False is certain, and is the result for views of
/// ordinary arrays (each stride is at least the span of the smaller strides). True is not certain.
bool may_overlap_itself(const StridedView& view);
/// As above, for the target's side of axes.
bool may_overlap_itself(SmallVec<Axis> axes, std::int64_t itemsize_bytes);

/// The addresses [begin, end).
struct AddressRange {
  std::uintptr_t begin;
  std::uintptr_t end;
};
/// The addresses of all elements.
AddressRange range_of(const std::byte* block, const StridedView& view);
AddressRange range_of(const std::byte* block, const checked::ByteHull& hull);
/// Whether the ranges have a common byte.
bool share_bytes(const AddressRange& a, const AddressRange& b);

/// Whether every element of the source is the target's element at the same index.
bool same_elements(const std::byte* target_block, const StridedView& target,
                   const std::byte* source_block, const StridedView& source);

/// A view with this shape and item size without gaps, row-major from offset 0; nothing if its
/// length does not fit in 64 bits.
std::optional<StridedView> packed(const StridedView& view);

// --- Copies (plan.cc) ----------------------------------------------------------------------------

/// The length of this machine's last-level cache, as the system reported it at the first call.
std::int64_t cache_bytes();
/// Thresholds in bytes of the target. Only tests set them.
struct CopyLimits {
  /// From this length on, stores may be non-temporal. With ordinary stores, planes of a quarter of
  /// the last-level cache and rows of a half begin to evict what they need. (Measured with 32 MiB:
  /// equal at 8 and at 16 MiB.)
  std::int64_t stream_bytes = cache_bytes() / 4;
  std::int64_t stream_rows_bytes = cache_bytes() / 2;
  /// From this length on, all threads work; from twice this length on if rows are copied, because
  /// one thread copies rows twice as fast. (Measured with two: to wake the second one and to move
  /// data into its caches takes longer than it saves for planes of 1 MiB and rows of 2 MiB, and
  /// less for planes of 3 MiB.)
  std::int64_t parallel_bytes = std::int64_t{1} << 21;
  /// The length of a task of rows, and of the work that a thread takes at once.
  std::int64_t piece_bytes = std::int64_t{1} << 18;
};

/// Copies every element of `source` to the element of `target` at the same index, as if in
/// row-major order of the index. Reverses the bytes of every unit of `swap_unit_bytes`; 0 and 1:
/// does not.
///
/// Requires sound views with the same shape and item size, at least one element of at least one
/// byte, and disjoint hulls. The unit must divide the item size. Cannot fail; does not allocate.
void copy_view(std::byte* target_block, const StridedView& target, const std::byte* source_block,
               const StridedView& source, std::int64_t swap_unit_bytes = 1,
               const CopyLimits& limits = {});

// --- Fills (fill.cc) -----------------------------------------------------------------------------
//
// The element is repeated once into a pattern of whole cache lines; rows are then filled line by
// line. A row shorter than a cache line counts as one element. Each piece of about half a MiB has
// one of three kinds of store:
//
//   lines     vector stores. As fast as memset while the target is in the nearer caches.
//   strings   the processor's fill instruction (x86: rep stos), for elements up to 8 bytes in rows
//             of some kilobytes. It takes over cache lines without reading them. The promise
//             fill-full (promises.py) needs it: vectors took 1.1 to 2 times as long from 8 MiB on.
//   streams   non-temporal stores, for zeros that do not fit in the caches (measured: three times
//             as fast as vectors), and for any element in targets many times larger than caches.
//
// Fresh memory is not streamed, because the kernel has just zeroed the page through the caches
// (measured: a fifth slower). A query to the kernel whether a piece is fresh takes a microsecond.

/// Thresholds in bytes. Only tests set them.
struct FillLimits {
  /// From this length on, all threads work. For elements far apart, a part of each page counts.
  std::int64_t parallel_bytes = std::int64_t{1} << 22;
  /// The approximate length of a thread's pieces.
  std::int64_t piece_bytes = std::int64_t{1} << 19;
  /// From this length on, zeros are streamed.
  std::int64_t stream_zeros_bytes = cache_bytes();
  /// From this length on, other elements are streamed (measured with 32 MiB of cache: slower at 128
  /// MiB, equal at 512 MiB).
  std::int64_t stream_bytes = 8 * cache_bytes();
};

/// Writes `element` to every element of `target`, as if in row-major order.
///
/// Requires a sound view of at least one element and element.size() == target.itemsize_bytes ≥ 1.
/// The bytes of `element` must be outside the view's hull. Cannot fail; does not allocate.
void fill_view(std::byte* target_block, const StridedView& target,
               std::span<const std::byte> element, const FillLimits& limits = {});

}  // namespace gridbuf::loops

// Shared by the implementation files, for them and their tests.
export namespace gridbuf::loops {

// --- Rows (rows.cc) ------------------------------------------------------------------------------
//
// A row is dense on both sides, or reversed, or repeated from one element, or strided on at least
// one side. Elements of a row are written in order: if elements of a target share bytes, the last
// element counts.

/// Groups of rows of elements, all at equal distances. The sides must not share bytes.
struct Rows {
  std::int64_t extent;
  std::int64_t itemsize_bytes;
  std::int64_t target_stride_bytes;
  std::int64_t source_stride_bytes;
  std::int64_t swap_unit_bytes = 1;  // reverses the bytes of every unit of this length
  bool streams = false;              // dense rows, by non-temporal stores; end_stream() ends it
  std::int64_t count = 1;            // of rows, and from one to the next:
  std::int64_t target_step_bytes = 0;
  std::int64_t source_step_bytes = 0;
  std::int64_t groups = 1;  // of `count` rows, and from one to the next:
  std::int64_t target_group_bytes = 0;
  std::int64_t source_group_bytes = 0;
};

/// Moves rows in order; `target` and `source` are the first elements.
using MoveRows = void (*)(const Rows& rows, std::byte* target, const std::byte* source);

/// The function for rows that differ from `rows` only in `count` and `groups`, or for single rows
/// of another `extent`.
MoveRows move_rows_with(Simd simd, const Rows& rows);

/// Reverses the bytes of every unit of `unit_bytes` in the first of the target's rows.
void swap_row(const Rows& rows, std::byte* target, std::int64_t unit_bytes);

// --- Tiles (tiles.cc, kernels.inc) ---------------------------------------------------------------
//
// If two layouts disagree about the contiguous dimension, a copy transposes many planes. The target
// is dense along one axis of a plane, the source along the second axis. A band of a plane is as
// many rows as fill two cache lines of the target. It is swept along the source. The source is then
// a few streams, which processors prefetch. Every cache line of the target is written whole, at
// once (non-temporally, if the target does not fit in the caches). So power-of-two strides are not
// slow, although all lines of a column share one cache set. Squares of elements are transposed in
// registers (as in HPTT, arXiv 1704.04374).
//
// For data in the caches, lines at power-of-two distances evict one another before a square is
// done. So these squares have whole cache lines, and begin with lines where they can. Blocks of
// 64 KiB are the tasks. The loops over squares are nested by the distance from one square to the
// next.
//
// If rows of the target begin in the middle of a cache line, the band goes through scratch memory.
// A line with elements of two bands is written by the band that has its first byte; that band also
// reads the following rows. Bands can be moved in any order and by any thread.

/// The length of a cache line, the unit of writes to memory.
inline constexpr std::int64_t kLineBytes = 64;

/// The sides of a block of planes.
enum class BlockSide : std::uint8_t { kRows, kColumns, kPlanes };
/// Loops over the sides, outermost first.
using Nest = std::array<BlockSide, 3>;

/// Row r, column c of the source is element r of the target's column c. The sides must not share
/// bytes.
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
  bool streams;                     // by non-temporal stores; end_stream() ends it
  const std::byte* next = nullptr;  // a hint: the address read after a band
  /// The number of planes at equal distances, and the order of their squares. More than one only
  /// without `streams`.
  std::int64_t count = 1;
  std::int64_t target_step_bytes = 0;
  std::int64_t source_step_bytes = 0;
  Nest nest = {BlockSide::kPlanes, BlockSide::kColumns, BlockSide::kRows};
};

/// Some rows of a plane, or columns, or planes: [begin, begin + length).
struct Part {
  std::int64_t begin;
  std::int64_t length;
};

/// A side in consecutive parts.
struct Cut {
  std::int64_t extent = 1;
  std::int64_t first = 1;  // the length of the first part
  std::int64_t size = 1;   // of the others; the last one has the rest
  std::int64_t count = 1;

  constexpr Part operator[](std::int64_t index) const {
    const std::int64_t begin = index == 0 ? 0 : first + (index - 1) * size;
    return {begin, index + 1 == count ? extent - begin : index == 0 ? first : size};
  }
};

/// The rows of a plane, cut for non-temporal stores. The first part ends where cache lines begin in
/// all columns, if there is such a row.
struct Bands : Cut {
  bool share_lines;  // a band reads rows of the next one
};

/// The bands that suit the plane.
Bands bands_of(const Plane& plane);

/// Planes, cut for ordinary stores: by BlockSide.
struct Blocks {
  Nest nest;  // of the blocks, and of the squares in a block
  std::array<Cut, 3> cuts = {};
};

/// Blocks of about `block_bytes`. Parts begin at cache lines where possible.
Blocks blocks_of(const Plane& plane, std::int64_t block_bytes);

/// Moves one band of a plane, or these rows of all planes.
using MoveBand = void (*)(const Plane& plane, const Part& band);

/// The function that moves a band. Streaming bands that share lines must be all those of bands_of.
MoveBand move_band_with(Simd simd);

/// Copies dense rows, by non-temporal stores from the first whole cache line to the last.
MoveRows stream_rows_with(Simd simd);
/// Copies dense rows by ordinary stores. The rows have at least a cache line, but a call of memcpy
/// for each would cost time.
MoveRows copy_rows_with(Simd simd);

/// Orders this thread's non-temporal stores before later ones.
void end_stream();

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
// together. Bands are visited in the order of the source, along which they are swept, and blocks in
// the order of the target.

/// The order in which a copy writes elements.
enum class Order : std::uint8_t {
  kAny,        // elements of the target share no byte
  kAsIndexed,  // elements may share bytes, and are written in order
};

/// The unit of a loop.
enum class Count : std::uint8_t {
  kSteps,    // of both sides, by the loop's strides
  kBands,    // parts of the rows of a plane
  kColumns,  // parts of its columns
  kPlanes,   // parts of the planes
  kPieces,   // of a row: this many elements each
  kRows,     // of rows: this many each
};

/// One loop of the counted space.
struct Loop {
  Count count;
  std::int64_t extent;
  std::int64_t target_stride_bytes = 0;
  std::int64_t source_stride_bytes = 0;
};

/// A copy, cut into tasks.
struct CopyPlan {
  bool moves_planes = false;
  Rows rows = {};    // of rows: the first ones
  Plane plane = {};  // of planes: the first one
  Bands bands = {};
  Cut columns = {};
  Cut planes = {};
  std::int64_t part = 0;             // elements of a row, or rows, per task
  std::int64_t swap_unit_bytes = 1;  // applied after the move
  std::byte* target = nullptr;       // of the first row or plane
  const std::byte* source = nullptr;
  SmallVec<Loop> loops = {};  // outermost first
  SmallVec<Axis> axes = {};   // the loops, with strides only of kSteps
  std::int64_t tasks = 1;     // the product of their extents
  std::int64_t tasks_of_a_piece = 1;
  bool parallel = false;
  bool streams = false;
};

/// Requires a walk of views as for copy_view. kAny: `arrange` has arranged it. kAsIndexed: it has
/// not.
CopyPlan plan_walk(Walk walk, std::int64_t itemsize_bytes, std::int64_t swap_unit_bytes,
                   Order order, const CopyLimits& limits);

/// Runs the tasks [begin, end).
void run(const CopyPlan& plan, Simd simd, std::int64_t begin, std::int64_t end);

}  // namespace gridbuf::loops
