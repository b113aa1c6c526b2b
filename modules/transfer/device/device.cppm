// gridbuf.transfer.device: copies and fills of any layout, on a stream of a device.
//
// The same functions as gridbuf.transfer's `copy_elements` and `fill_elements`, for memory that a
// device reaches. Both blocks may be anywhere (host, pinned, managed, device).
//
// Key decision: each kind of work goes to what is fast at it.
//   * A dense block is one 1-D copy of the driver.
//   * Within the device's memory everything else is a kernel.
//   * Over the bus the driver's 2-D copies are good at long rows. If the rows are short and many,
//     they cross as the host's memory has them, in long rows, and a kernel on the device packs them
//     before or spreads them after, by way of memory there.
//   * If the host's own rows are narrow, too (the halo of the contiguous dimension),
//   `copy_to_device`
//     and `copy_to_host` make a staged copy: the processor packs the elements into pinned memory,
//     they cross as one dense copy, and a kernel puts them into their places; the reverse to the
//     host.
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
#include "modules/transfer/device/kernel_plan.h"

export module gridbuf.transfer.device;

import gridbuf.device;
import gridbuf.layout.view;
import gridbuf.transfer.loops;

export namespace gridbuf {

/// Enqueues the copy. The result is defined as for copy_elements; overlapping views go by way of
/// device memory, which is freed on the stream.
///
/// Errors: kValue, before anything is enqueued, if a view is malformed, shapes or item sizes
/// differ, or the stream is dead; kMemory for overlapping views without scratch memory; those of
/// the driver, after which a part of the target may be written.
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
/// The host's memory is in use until the stream has been waited for; a staged copy waits itself.
/// Without memory for staging the rows are copied one by one. Errors: as copy_elements_on; a part
/// of the target may then be written.
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

/// Whether the rows of one side's memory are too narrow, and too many, to cross the bus one by one.
bool has_narrow_rows(const StridedView& view);

}  // namespace gridbuf

// Kernels. A plan is one plain value that says everything (kind, unit, axes, tiles, grid), made on
// the host without asking a device. It runs as a CUDA kernel, and as a loop over all threads of all
// blocks on the emulated device, with the same index logic (kernel_plan.h). What only a GPU shows
// is speed, and races between threads, which the plan excludes: no byte of the target is written
// twice, and tiles are read and written in two phases with a barrier between.
//
// How the kind is chosen. The largest power of two, up to 16, that divides both addresses, all
// strides and the row is the unit of an access.
//   * Source dense along another axis than the target: tiles, if they are an eighth full at least.
//   * Rows dense on both sides: units of 8 or 16 bytes if everything is aligned to them, else
//     chunks, if rows are long enough that their ends do not count.
//   * Anything else: units, in the target's order.
export namespace gridbuf::kernels {

/// CUDA's bound on the blocks of a launch.
inline constexpr std::int64_t kMostBlocks = (std::int64_t{1} << 31) - 1;

/// The longest element, after its repetitions are taken out, that a fill carries along.
inline constexpr std::int64_t kLongestElementBytes = GRIDBUF_KERNEL_ELEMENT_BYTES;

enum class KernelKind : std::uint8_t {
  kCopyUnits,
  kCopyChunks,
  kCopyTiles,
  kFillUnits,
  kFillChunks
};
std::string_view to_string(KernelKind kind);

/// A copy or a fill, planned for one launch.
struct KernelPlan {
  KernelKind kind() const { return static_cast<KernelKind>(arguments.kind); }

  gridbuf_kernel_plan arguments = {};
  // What the addresses of either side reach over.
  std::int64_t target_bytes = 0;
  std::int64_t source_bytes = 0;
  std::int64_t source_begin_bytes = 0;  // of the lowest byte, from the first element; 0 or less
};

/// Plans the copy of a walk's elements. The walk is ordered by its target (loops::order_by_target)
/// and its axes are merged; no byte of the target is named twice, and the sides share none. Fewer
/// blocks than kMostBlocks give the same result: that is for tests.
KernelPlan plan_copy(const loops::Walk& walk, std::int64_t itemsize_bytes,
                     std::int64_t most_blocks = kMostBlocks);

/// Plans writing `element`, which is as long as the items, to each element of the walk's target.
/// The same is asked of the walk; its source is not looked at. Error: kValue for an element longer
/// than kLongestElementBytes that does not repeat a shorter one.
absl::StatusOr<KernelPlan> plan_fill(const loops::Walk& walk, std::span<const std::byte> element,
                                     std::int64_t most_blocks = kMostBlocks);

/// Enqueues the plan. Both sides are memory that the current device reaches. Errors: those of
/// DeviceDriver::launch.
absl::Status launch(DeviceDriver& driver, const KernelPlan& plan, StreamHandle stream);

/// Runs all threads of all blocks now, in memory of the host: for tests.
void run_on_host(const KernelPlan& plan);

}  // namespace gridbuf::kernels
