// gridbuf.transfer.device: copies and fills of any layout, on a stream of a device.
//
// The counterparts of `copy_elements` and `fill_elements` of gridbuf.transfer, for memory that a
// device accesses. Each block may be host, pinned, managed or device memory.
//
// Key decision: each kind of work has one of four ways.
//   * A dense block is one 1-D copy of the driver.
//   * Within the device's memory, every other copy or fill is a kernel.
//   * Over the bus, the driver's 2-D copies are fast for long or few rows.
//   * All other elements cross packed, in the order of the host's memory. A kernel packs or spreads
//     them on the device. If the host's rows are narrow, too (the halo of the contiguous
//     dimension), the processor packs or spreads them in pinned memory.
//
// If elements of the target share bytes, they are written one by one, in order. (Strides of 0 are
// found before, and only their last repetition is written.)
module;

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "absl/status/status.h"
#include "modules/transfer/device/kernel_plan.h"

export module gridbuf.transfer.device;

export import gridbuf.device;
export import gridbuf.layout.view;
import gridbuf.transfer.loops;

export namespace gridbuf {

/// Enqueues the copy. The result is that of copy_elements. Overlapping views are copied through
/// device memory, which is freed on the stream.
///
/// Memory of the host is in use until a wait for the stream. It need not be pinned. The call itself
/// waits for the stream if the processor packs elements. Without memory for packed elements, rows
/// are copied one by one.
///
/// Errors: kValue, before any work is enqueued, if a view is malformed, shapes or item sizes
/// differ, or the stream is not alive; kMemory for overlapping views without scratch memory; those
/// of the driver, after which a part of the target may be written. `parts` as in CopyOptions.
absl::Status copy_elements_on(DeviceDriver& driver, std::byte* target_block,
                              const StridedView& target, const std::byte* source_block,
                              const StridedView& source, StreamHandle stream,
                              const ElementParts* parts = nullptr);

/// Enqueues writing `element` to every element of `target`. `element` is memory of the host and is
/// not used after return. A kernel fills memory of the device. (For memory of the host,
/// fill_elements is faster.) Errors: as above, and kValue if the element is not as long as the
/// items.
absl::Status fill_elements_on(DeviceDriver& driver, std::byte* target_block,
                              const StridedView& target, std::span<const std::byte> element,
                              StreamHandle stream, const ElementParts* parts = nullptr);

}  // namespace gridbuf

// For this library and its tests.
export namespace gridbuf {

/// The length of the memory for packed elements on each side. Longer copies go through it in
/// pieces.
inline constexpr std::int64_t kStagingBytes = std::int64_t{8} << 20;

}  // namespace gridbuf

// Kernels. A plan is one plain value with all parameters (kind, unit, axes). The host makes it
// without a query to a device. It runs as a kernel of a GPU, or on the emulated device as a loop
// over all threads, with the same index logic (kernel_plan.h). So only speed and races between
// threads need a GPU to be tested. The plan excludes races: each byte of the target is written
// once, and a barrier separates reads and writes of tiles.
//
// The unit of an access is the largest power of two, up to 16, that divides both addresses, all
// strides and the row. If the source is dense along another axis than the target, tiles replace
// units.
export namespace gridbuf::kernels {

/// A copy or a fill, planned for one launch.
struct KernelPlan {
  gridbuf_kernel_plan arguments = {};
  /// The memory that the addresses of target and source span; a fill has no source.
  std::array<KernelOperand, 2> operands = {};
};

/// Plans the copy of a walk's elements. Requires a walk that is ordered by its target
/// (loops::order_by_target), with merged axes. Elements of the target must not share bytes with
/// each other or with the source.
KernelPlan plan_copy(const loops::Walk& walk, std::int64_t itemsize_bytes);

/// Plans writing `element`, which is as long as the items, to each element of the walk's target.
/// Requirements for the walk as above; its source is not used. Nothing if units of the target
/// differ: the element is longer than the unit, and does not repeat a shorter pattern.
std::optional<KernelPlan> plan_fill(loops::Walk walk, std::span<const std::byte> element);

/// The plan for DeviceDriver::launch. Refers to the plan. The current device must access the memory
/// of both sides.
DeviceKernel kernel_of(const KernelPlan& plan);

/// Launches a plan on a GPU, as gridbuf_kernel_launch.
using Launch = int (*)(const gridbuf_kernel_plan* plan, std::uint64_t stream);

/// Sets the function that launches plans. //modules/device/drivers calls it before main, so that
/// programs without a device do not link code of a GPU.
void set_launch(Launch function);

}  // namespace gridbuf::kernels
