// gridbuf.transfer.device: copies and fills of any layout, on a stream of a device.
//
// The same functions as gridbuf.transfer's `copy_elements` and `fill_elements`, for memory that a
// device reaches: every element of one view to the element of another at the same index, whatever
// the strides, padding left alone. Both blocks may be anywhere (host, pinned, managed, device).
// `copy_to_device` and `copy_to_host` are the two copies of a storage that has memory on both
// sides.
//
// Key decision: each kind of work goes to what is fast at it.
//   * A dense block is one 1-D copy of the driver, wherever the two sides are.
//   * Within the device's memory everything else is a kernel, at the speed of that memory for
//     transpositions too.
//   * Over the bus the driver's 2-D copies are good at long rows. If the rows are short and many,
//     they cross as the host's memory has them, in long rows, and a kernel on the device packs them
//     before or spreads them after, by way of memory there.
//   * If the host's own rows are narrow, too (the halo of the contiguous dimension: three elements,
//     a quarter of a million times), `copy_to_device` and `copy_to_host` make a staged copy: the
//     processor packs the elements into pinned memory, they cross as one dense copy, and a kernel
//     puts them into their places; the reverse to the host. What crosses is exactly the elements.
//
// A target that names bytes twice is written in order, one element after the other. (Only whole
// repetitions, strides of 0, are found and left out.)
module;

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "modules/transfer/device/moves.h"

export module gridbuf.transfer.device;

import gridbuf.device;
import gridbuf.layout.view;
import gridbuf.transfer.loops;

export namespace gridbuf {

/// Enqueues the copy. The result is defined as for copy_elements: as if all of the source was read
/// first and the target was then written in row-major order; overlapping views go by way of device
/// memory, which is freed on the stream. Ordinary host memory is used as DeviceDriver::copy says:
/// it may be changed or read at return.
///
/// Errors: kValue, before anything is enqueued, if a view is malformed, shapes or item sizes
/// differ, or the stream is dead; what the driver answers for its addresses; kMemory for
/// overlapping views without scratch memory. After an error of the driver a part of the target may
/// be written.
absl::Status copy_elements_on(DeviceDriver& driver, std::byte* target_block,
                              const StridedView& target, const std::byte* source_block,
                              const StridedView& source, StreamHandle stream);

/// Enqueues writing `element`, memory of the host that has been read at return, to every element of
/// `target`. Memory of the device is filled by a kernel; for memory of the host this waits for the
/// stream, and the processor fills it. Errors: as above, and kValue if the element is not as long
/// as the items.
absl::Status fill_elements_on(DeviceDriver& driver, std::byte* target_block,
                              const StridedView& target, std::span<const std::byte> element,
                              StreamHandle stream);

/// Elements in one side's memory; the view counts its bytes from the block.
struct SideElements {
  std::byte* block = nullptr;
  StridedView view = {};
};

/// Copies the elements of the host's memory to those of the device's, or the reverse, on `stream`.
/// Both views have one shape and item size; the host's memory may be pinned or not. The blocks
/// share no byte.
///
/// To the device: work is enqueued, and the host's memory must be left alone until the stream has
/// been waited for. To the host: the elements are there once the stream has been waited for. Where
/// the processor packs, both wait for the stream themselves. Staging memory is pinned on the host
/// and plain on the device, from the driver's own sources; without it the rows are copied one by
/// one.
/// Errors: as copy_elements_on; a part of the target may then be written.
absl::Status copy_to_device(DeviceDriver& driver, const SideElements& device,
                            const SideElements& host, StreamHandle stream);
absl::Status copy_to_host(DeviceDriver& driver, const SideElements& host,
                          const SideElements& device, StreamHandle stream);

}  // namespace gridbuf

// What the implementation files share, for them and their tests.
export namespace gridbuf {

/// The most that is packed at once, on each side; longer copies go in pieces through the same
/// memory.
inline constexpr std::int64_t kStagingBytes = std::int64_t{8} << 20;

/// Whether the rows of one side's memory are too narrow, and too many, to cross the bus one by one,
/// whatever the other side is.
bool has_narrow_rows(const StridedView& view);

}  // namespace gridbuf

// Kernels. A plan is one plain value, `Move`, that says everything (kind, unit, axes, tiles, grid),
// made on the host without asking a device. It runs in two ways that share every line of the index
// logic (moves.h, which nvcc and the host's compiler both build): as a CUDA kernel, and as a loop
// over all threads of all blocks, which is what the emulated device runs. So tests on a machine
// without a GPU are tests of the kernels but for what only a GPU shows: its speed, and races
// between threads. Those are kept out by construction: no byte of the target is written twice, and
// tiles are read and written in two phases with a barrier between.
//
// How the kind is chosen. The bytes of both addresses, all strides and the row are put together:
// the largest power of two that divides them all, up to 16, is the unit of an access.
//   * Source dense along another axis than the target: tiles, if they are an eighth full at least.
//   * Rows dense on both sides: units of 8 or 16 bytes if everything is aligned to them, else
//     chunks, if rows are long enough that their ends do not count.
//   * Anything else: units, in the target's order.
// Items of other lengths than 1, 2, 4, 8 and 16 bytes, and misaligned ones, are rows of units.
export namespace gridbuf::kernels {

/// CUDA's bound on the blocks of a launch.
inline constexpr std::int64_t kMostBlocks = (std::int64_t{1} << 31) - 1;

/// The longest element, after its repetitions are taken out, that a fill carries along.
inline constexpr std::int64_t kLongestElementBytes = GRIDBUF_MOVE_ELEMENT_BYTES;

enum class MoveKind : std::uint8_t { kCopyUnits, kCopyChunks, kCopyTiles, kFillUnits, kFillChunks };
std::string_view to_string(MoveKind kind);

/// A copy or a fill, planned for one launch.
class Move {
 public:
  MoveKind kind() const { return static_cast<MoveKind>(launch_.kind); }
  /// Of one access; of tiles: the item. The vectors of tiles are at least as long.
  std::int64_t unit_bytes() const { return launch_.unit_bytes; }
  std::int64_t source_vector_bytes() const { return launch_.along_source.vector_bytes; }
  std::int64_t target_vector_bytes() const { return launch_.along_target.vector_bytes; }
  std::int64_t grid_blocks() const { return launch_.grid_blocks; }
  /// Pieces of work that the blocks share out; a block takes every grid_blocks-th.
  std::int64_t work_blocks() const { return static_cast<std::int64_t>(launch_.work_blocks); }
  /// What the kernel gets.
  const gridbuf_move& arguments() const { return launch_; }

 private:
  friend struct MovePlanner;
  friend void run_on_host(const Move& move);
  friend absl::Status launch(DeviceDriver& driver, const Move& move, StreamHandle stream);

  gridbuf_move launch_ = {};
  // What the addresses of either side reach over.
  std::int64_t target_bytes_ = 0;
  std::int64_t source_bytes_ = 0;
  std::int64_t source_begin_bytes_ = 0;  // of the lowest byte, from the first element; 0 or less
};

/// Plans the copy of a walk's elements. The walk is ordered by its target (loops::order_by_target)
/// and its axes are merged; no byte of the target is named twice, and the sides share none. Fewer
/// blocks than kMostBlocks give the same result: that is for tests.
Move plan_copy(const loops::Walk& walk, std::int64_t itemsize_bytes,
               std::int64_t most_blocks = kMostBlocks);

/// Plans writing `element`, which is as long as the items, to each element of the walk's target.
/// The same is asked of the walk; its source is not looked at. Error: kValue for an element longer
/// than kLongestElementBytes that does not repeat a shorter one.
absl::StatusOr<Move> plan_fill(const loops::Walk& walk, std::span<const std::byte> element,
                               std::int64_t most_blocks = kMostBlocks);

/// Enqueues the move. Both sides are memory that the current device reaches. Errors: those of
/// DeviceDriver::launch.
absl::Status launch(DeviceDriver& driver, const Move& move, StreamHandle stream);

/// Runs all threads of all blocks here and now, in memory of the host: what the emulated device
/// does with a launch, for tests.
void run_on_host(const Move& move);

}  // namespace gridbuf::kernels
