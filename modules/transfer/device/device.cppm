// gridbuf.transfer.device: copies and fills of any layout, on a stream of a device.
//
// The counterparts of `copy_elements` and `fill_elements` of gridbuf.transfer, for memory that a
// device accesses. Each block may be host, pinned, managed or device memory.
//
// Key decision: each kind of work has the fastest of four ways.
//   * A dense block is one 1-D copy of the driver.
//   * Within the device's memory, every other copy or fill is a kernel.
//   * Over the bus, the driver's 2-D copies are fast for long rows. Short and many rows cross as
//     long rows, in the order of the host's memory; a kernel on the device packs them before, or
//     spreads them after, through device memory.
//   * If the host's rows are narrow, too (the halo of the contiguous dimension), `copy_to_device`
//     and `copy_to_host` make a staged copy. To the device, the processor packs the elements into
//     pinned memory, they cross as one dense copy, and a kernel spreads them. To the host, the
//     order is the reverse.
//
// If elements of the target share bytes, they are written one by one, in order. (Strides of 0 are
// found before, and only their last repetition is written.)
module;

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "modules/transfer/device/kernel_plan.h"

export module gridbuf.transfer.device;

export import gridbuf.device;
export import gridbuf.layout.view;
import gridbuf.transfer.loops;

export namespace gridbuf {

/// Enqueues the copy. The result is that of copy_elements. Overlapping views are copied through
/// device memory, which is freed on the stream.
///
/// Errors: kValue, before any work is enqueued, if a view is malformed, shapes or item sizes
/// differ, or the stream is not alive; kMemory for overlapping views without scratch memory; those
/// of the driver, after which a part of the target may be written. `parts` as in CopyOptions.
absl::Status copy_elements_on(DeviceDriver& driver, std::byte* target_block,
                              const StridedView& target, const std::byte* source_block,
                              const StridedView& source, StreamHandle stream,
                              const ElementParts* parts = nullptr);

/// Enqueues writing `element` to every element of `target`. `element` is memory of the host and is
/// not used after return. A kernel fills memory of the device. For memory of the host this function
/// waits for the stream, and the processor fills it. Errors: as above, and kValue if the element is
/// not as long as the items.
absl::Status fill_elements_on(DeviceDriver& driver, std::byte* target_block,
                              const StridedView& target, std::span<const std::byte> element,
                              StreamHandle stream, const ElementParts* parts = nullptr);

/// Elements on one side. The offsets of the view count from the block.
struct SideElements {
  std::byte* block = nullptr;
  StridedView view = {};
};

/// Copies the elements of the host's memory to those of the device's, or the reverse, on `stream`.
/// Shapes and item sizes must be equal, and the blocks must not share bytes. The host's memory need
/// not be pinned.
///
/// The host's memory is in use until a wait for the stream; a staged copy waits before it returns.
/// Without memory for staging the rows are copied one by one. Errors: as copy_elements_on; a part
/// of the target may then be written.
absl::Status copy_to_device(DeviceDriver& driver, const SideElements& device,
                            const SideElements& host, StreamHandle stream,
                            const ElementParts* parts = nullptr);
/// The opposite copy.
absl::Status copy_to_host(DeviceDriver& driver, const SideElements& host,
                          const SideElements& device, StreamHandle stream,
                          const ElementParts* parts = nullptr);

}  // namespace gridbuf

// Shared by the implementation files, for them and their tests.
export namespace gridbuf {

/// The length of the staging memory on each side. Longer copies go through it in pieces.
inline constexpr std::int64_t kStagingBytes = std::int64_t{8} << 20;

/// Whether the rows of one side are too narrow, and too many, to cross the bus one by one.
bool has_narrow_rows(const StridedView& view);

}  // namespace gridbuf

// Kernels. A plan is one plain value with all parameters (kind, unit, axes, tiles, grid). The host
// makes it without a query to a device. It runs as a CUDA kernel, or on the emulated device as a
// loop over all threads of all blocks, with the same index logic (kernel_plan.h). So only speed and
// races between threads need a GPU to be tested. The plan excludes races: each byte of the target
// is written once, and a barrier separates reads and writes of tiles.
//
// The choice of the kind. The unit of an access is the largest power of two, up to 16, that divides
// both addresses, all strides and the row.
//   * Source dense along another axis than the target: tiles, if they are an eighth full at least.
//   * Rows dense on both sides: units of 8 or 16 bytes if everything is aligned to them, else
//     chunks, if rows are long enough that their ends do not count.
//   * Anything else: units, in the target's order.
export namespace gridbuf::kernels {

/// CUDA's bound on the blocks of a launch.
inline constexpr std::int64_t kMostBlocks = (std::int64_t{1} << 31) - 1;

/// The longest element of a fill, without repetitions of a shorter pattern.
inline constexpr std::int64_t kLongestElementBytes = GRIDBUF_KERNEL_ELEMENT_BYTES;

/// The loops that a kernel can run.
enum class KernelKind : std::uint8_t {
  kCopyUnits,
  kCopyChunks,
  kCopyTiles,
  kFillUnits,
  kFillChunks
};
/// The name of the kind, for messages.
std::string_view to_string(KernelKind kind);

/// A copy or a fill, planned for one launch.
struct KernelPlan {
  KernelKind kind() const { return static_cast<KernelKind>(arguments.kind); }

  gridbuf_kernel_plan arguments = {};
  /// The memory that the addresses of target and source span; a fill has no source.
  std::array<KernelOperand, 2> operands = {};
};

/// Plans the copy of a walk's elements. Requires a walk that is ordered by its target
/// (loops::order_by_target), with merged axes. Elements of the target must not share bytes with
/// each other or with the source. Tests pass a smaller number of blocks, which gives the same
/// result.
KernelPlan plan_copy(const loops::Walk& walk, std::int64_t itemsize_bytes,
                     std::int64_t most_blocks = kMostBlocks);

/// Plans writing `element`, which is as long as the items, to each element of the walk's target.
/// Requirements for the walk as above; its source is not used. Error: kValue for an element longer
/// than kLongestElementBytes that does not repeat a shorter pattern.
absl::StatusOr<KernelPlan> plan_fill(const loops::Walk& walk, std::span<const std::byte> element,
                                     std::int64_t most_blocks = kMostBlocks);

/// The plan for DeviceDriver::launch. Refers to the plan. The current device must access the memory
/// of both sides.
DeviceKernel kernel_of(const KernelPlan& plan);

/// Sets the function of kernels.cu that launches a plan. //modules/device/drivers calls it before
/// main, so that programs without a device do not link CUDA code.
void set_cuda_launch(int (*launch)(const gridbuf_kernel_plan* plan, std::uint64_t stream));

}  // namespace gridbuf::kernels
