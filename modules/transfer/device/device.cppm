// gridbuf.transfer.device: copies and fills of any layout, on a stream of a device.
//
// The same functions as gridbuf.transfer's `copy_elements` and `fill_elements`, for memory that a
// device reaches: every element of one view to the element of another at the same index, whatever
// the strides, padding left alone. Both blocks may lie anywhere (host, pinned, managed, device).
//
// The key choice: each kind of work goes to what is fast at it. A dense block is one 1-D copy of
// the driver, wherever the two sides are. Within the device's memory everything else is a kernel
// (gridbuf.transfer.kernels), at the speed of that memory for transpositions too. Over the bus the
// driver's 2-D copies are good at long rows; rows below kWideRowBytes, if there are more than
// kFewRows of them, cross as the host's memory has them, in long rows, and a kernel on the device
// packs them before or spreads them after, by way of memory there. Where the host's own rows are
// narrow they are copied as they are; gridbuf.transfer.boxes packs them with the processor.
//
// A target that names bytes twice is written in order, one element after the other. (Only whole
// repetitions, strides of 0, are found and left out.)
module;

#include <cstddef>
#include <cstdint>
#include <span>

#include "absl/status/status.h"

export module gridbuf.transfer.device;

import gridbuf.device;
import gridbuf.layout.view;

export namespace gridbuf {

/// Rows from here on cross the bus at its speed one by one. (A figure from others' measurements: no
/// GPU was at hand.)
inline constexpr std::int64_t kWideRowBytes = 4096;
/// So few rows cost less than a kernel and memory to pack them.
inline constexpr std::int64_t kFewRows = 256;
/// … if they are copied by at most this many calls of the driver.
inline constexpr std::int64_t kFewCalls = 8;

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

/// Whether the rows of one side's memory are too narrow, and too many, to cross the bus one by one,
/// whatever the other side is.
bool has_narrow_rows(const StridedView& view);

}  // namespace gridbuf
