// gridbuf.transfer.kernels: copies and fills as kernels on a device.
//
// Copies of a device's driver are 1-D and 2-D: a transposition by them is a transfer for every
// element. A kernel moves any two layouts at the speed of the device's memory. This module plans
// such kernels and launches them; what their threads do is in moves/moves.h, which nvcc and the
// host's compiler both build.
//
// The key choice: a plan is one plain value, `Move`, that says everything (kind, unit, axes, tiles,
// grid), made here on the host without asking a device. It runs in two ways that share every line
// of the index logic: as a CUDA kernel, and as a loop over all threads of all blocks, which is what
// the emulated device runs. So the tests of this module, on a machine without a GPU, are tests of
// the kernels but for what only a GPU shows: its speed, and races between threads. Those are kept
// out by construction: no byte of the target is written twice, and tiles are read and written in
// two phases with a barrier between.
//
// How the kind is chosen. The bytes of both addresses, all strides and the row are put together:
// the largest power of two that divides them all, up to 16, is the unit of an access.
//   * Source dense along another axis than the target: tiles, if they are an eighth full at least.
//   * Rows dense on both sides: units of 8 or 16 bytes if everything is aligned to them, else
//     chunks, if rows are long enough that their ends do not count.
//   * Anything else: units, in the target's order.
// Items of other lengths than 1, 2, 4, 8 and 16 bytes, and misaligned ones, are rows of units.
// (Chosen by what is known of GPUs: none was at hand to measure on.)
module;

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "modules/transfer/kernels/moves/moves.h"

export module gridbuf.transfer.kernels;

import gridbuf.device;
import gridbuf.transfer.walk;

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

/// Plans the copy of a walk's elements. The walk is ordered by its target (walk::order_by_target)
/// and its axes are merged; no byte of the target is named twice, and the sides share none. Fewer
/// blocks than kMostBlocks give the same result: that is for tests.
Move plan_copy(const walk::Walk& walk, std::int64_t itemsize_bytes,
               std::int64_t most_blocks = kMostBlocks);

/// Plans writing `element`, which is as long as the items, to each element of the walk's target.
/// The same is asked of the walk; its source is not looked at. Error: kValue for an element longer
/// than kLongestElementBytes that does not repeat a shorter one.
absl::StatusOr<Move> plan_fill(const walk::Walk& walk, std::span<const std::byte> element,
                               std::int64_t most_blocks = kMostBlocks);

/// Enqueues the move. Both sides are memory that the current device reaches. Errors: those of
/// DeviceDriver::launch.
absl::Status launch(DeviceDriver& driver, const Move& move, StreamHandle stream);

/// Runs all threads of all blocks here and now, in memory of the host: what the emulated device
/// does with a launch, for tests.
void run_on_host(const Move& move);

}  // namespace gridbuf::kernels
