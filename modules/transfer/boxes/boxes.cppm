// gridbuf.transfer.boxes: parts of an array between the host and a device.
//
// Purpose. A storage with two buffers updates one from the other, box by box. This module copies
// one such box, whatever the two layouts are, with as few transfers over the bus as that allows.
//
// Key choice: rows decide. A box of long rows is a few 2-D copies of the driver, straight from one
// buffer to the other. Where rows are narrow (the halo of the contiguous dimension: three elements,
// a quarter of a million times), each row would be a transfer of its own, so the box is packed on
// the side where it lies, crosses as one dense copy, and is unpacked on the other side: on the host
// by the processor, on the device by a 2-D copy within its own memory. What crosses is exactly the
// elements, in either way: never a row that was not asked for.
//
// Staging memory is pinned on the host and plain on the device, at most kStagingBytes on each;
// longer boxes go in pieces through the same memory. It comes from the driver's own sources, which
// keep what is given back, and where there is none the rows are copied one by one. All of it is
// written above DeviceDriver, so it is one code for every device. (On CUDA it is compiled and has
// not run: no GPU was at hand. Rows as narrow as this are known to be slow there; where the best
// border lies is to be measured.)
module;

#include <cstddef>
#include <cstdint>

#include "absl/status/status.h"

export module gridbuf.transfer.boxes;

import gridbuf.alloc.device;
import gridbuf.layout.view;

export namespace gridbuf {

/// Elements in one side's memory; the view counts its bytes from the block.
struct SideElements {
  std::byte* block = nullptr;
  StridedView view = {};
};

/// Rows of fewer bytes are packed …
inline constexpr std::int64_t kNarrowRowBytes = 64;
/// … if the box has more of them than this.
inline constexpr std::int64_t kFewRows = 16;
/// The most that is packed at once.
inline constexpr std::int64_t kStagingBytes = std::int64_t{8} << 20;

/// Copies the elements of the host's memory to those of the device's, or the reverse, on `stream`.
/// Both views have one shape and item size and are those of ordinary arrays: no two elements of one
/// share a byte. The host's memory may be pinned or not.
///
/// To the device: work is enqueued, and the host's memory must be left alone until the stream has
/// been waited for. To the host: the elements are there once the stream has been waited for.
/// Errors: as copy_elements_on; a part of the target may then be written.
absl::Status copy_to_device(DeviceDriver& driver, const SideElements& device,
                            const SideElements& host, StreamHandle stream);
absl::Status copy_to_host(DeviceDriver& driver, const SideElements& host,
                          const SideElements& device, StreamHandle stream);

}  // namespace gridbuf
