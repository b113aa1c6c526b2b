// gridbuf.transfer.boxes: parts of an array between the host and a device.
//
// Purpose. A storage with two buffers updates one from the other, box by box. This module copies
// one such box, whatever the two layouts are, with as few transfers over the bus as that allows.
//
// Key choice: rows of the host decide. A box whose rows are long in the host's memory crosses in as
// few 2-D copies as that allows, straight into the other buffer, or, where the device has it in
// another order, by way of device memory and a kernel (gridbuf.transfer.device). Where the host's
// own rows are narrow (the halo of the contiguous dimension: three elements, a quarter of a million
// times), each row would be a transfer of its own: the box is packed into pinned memory by the
// processor, crosses as one dense copy, and is put into its places by a kernel; the reverse to the
// host. What crosses is exactly the elements, in either way: never a row that was not asked for.
//
// Staging memory is pinned on the host and plain on the device, at most kStagingBytes on each;
// longer boxes go in pieces through the same memory. It comes from the driver's own sources, which
// keep what is given back, and where there is none the rows are copied one by one. All of it is
// written above DeviceDriver, so it is one code for every device. (On CUDA it is compiled and has
// not run: no GPU was at hand. Where the best border between the two ways lies is to be measured.)
module;

#include <cstddef>
#include <cstdint>

#include "absl/status/status.h"

export module gridbuf.transfer.boxes;

import gridbuf.device;
import gridbuf.layout.view;

export namespace gridbuf {

/// Elements in one side's memory; the view counts its bytes from the block.
struct SideElements {
  std::byte* block = nullptr;
  StridedView view = {};
};

/// The most that is packed at once.
inline constexpr std::int64_t kStagingBytes = std::int64_t{8} << 20;

/// Copies the elements of the host's memory to those of the device's, or the reverse, on `stream`.
/// Both views have one shape and item size; the host's memory may be pinned or not. The blocks
/// share no byte.
///
/// To the device: work is enqueued, and the host's memory must be left alone until the stream has
/// been waited for. To the host: the elements are there once the stream has been waited for. Where
/// the processor packs, both wait for the stream themselves.
/// Errors: as copy_elements_on; a part of the target may then be written.
absl::Status copy_to_device(DeviceDriver& driver, const SideElements& device,
                            const SideElements& host, StreamHandle stream);
absl::Status copy_to_host(DeviceDriver& driver, const SideElements& host,
                          const SideElements& device, StreamHandle stream);

}  // namespace gridbuf
