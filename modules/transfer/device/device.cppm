// gridbuf.transfer.device: copies between any two layouts, on a stream of a device.
//
// The same function as gridbuf.transfer's `copy_elements`, for memory that a device reaches: every
// element of one view to the element of another at the same index, whatever the strides, padding
// left alone. Both blocks may lie anywhere (host, pinned, managed, device).
//
// The key choice: only what every device can do. A copy is cut into as few calls of the driver as
// the layouts allow: a dense block is one 1-D copy, rows at equal distances are one 2-D copy, and
// what is left over is a loop of those. Equal layouts and the usual halo updates are then one call;
// a transposition is one 2-D copy per row, of single elements, which is right and slow. Kernels
// that pack and unpack can come behind the same function; it is what they will be tested against.
module;

#include <cstddef>

#include "absl/status/status.h"

export module gridbuf.transfer.device;

import gridbuf.alloc.device;
import gridbuf.layout.view;

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

}  // namespace gridbuf
