module;

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

module gridbuf.transfer.device;

import gridbuf.alloc;
import gridbuf.base;
import gridbuf.layout;
import gridbuf.layout.view;
import gridbuf.transfer;
import gridbuf.transfer.loops;

namespace gridbuf {
namespace {

std::int64_t bytes_of(const StridedView& view) {
  // The views were checked: neither leaves 64 bits.
  return checked::mul(checked::product(view.shape.span()).value_or(0), view.itemsize_bytes)
      .value_or(checked::kMaxBytes);
}

// Whether the processor packs: the host's rows are narrow, and the elements are those of ordinary
// arrays, each with bytes of its own.
bool packs_on_host(const SideElements& to, const SideElements& from, const StridedView& host) {
  const bool is_sound = to.view.shape == from.view.shape &&
                        to.view.itemsize_bytes == from.view.itemsize_bytes && byte_hull(to.view) &&
                        byte_hull(from.view) && to.block != nullptr && from.block != nullptr;
  return is_sound && !loops::may_overlap_itself(to.view) && !loops::may_overlap_itself(from.view) &&
         has_narrow_rows(host);
}

// The same elements, dimensions ordered as in the host's memory: the processor packs them
// at the speed of that, and the order on the device is the kernel's business.
SideElements in_order_of(const StridedView& host, const SideElements& side) {
  const Axes axes = axes_by_rank(layout_of(host.shape, host.strides_bytes));
  IndexMap map(side.view.shape);
  map.permute(axes);
  return {side.block, apply(map, side.view)};
}

// A place to pack into on either side.
struct Staging {
  Block pinned;
  Block device;
};

// Nothing if there is no memory for it.
absl::StatusOr<std::optional<Staging>> make_staging(DeviceDriver& driver, std::int64_t bytes,
                                                    StreamHandle stream) {
  const ScopedStream scope(stream);
  const AllocationRequest request{.total_bytes = std::min(bytes, kStagingBytes)};
  Staging staging;
  for (auto [block, kind] : {std::pair(&staging.pinned, MemoryKind::kPinned),
                             std::pair(&staging.device, MemoryKind::kDevice)}) {
    absl::StatusOr<Block> made = driver.resource(kind).allocate(request);
    if (made.ok()) {
      *block = *std::move(made);
    } else if (error_class_of(made.status()) == ErrorClass::kMemory) {
      return std::nullopt;
    } else {
      return made.status();
    }
  }
  return std::optional<Staging>(std::move(staging));
}

SideElements part_of(const SideElements& side, int axis, std::int64_t start, std::int64_t stop) {
  IndexMap map(side.view.shape);
  map.keep(axis, slice_points({start, stop}, side.view.shape[axis]));
  return {side.block, apply(map, side.view)};
}

// Calls `work` with pieces of both sides that fit the staging memory.
template <class Work>
absl::Status in_pieces(const SideElements& host, const SideElements& device, const Work& work) {
  const std::int64_t bytes = bytes_of(host.view);
  if (bytes <= kStagingBytes) return work(host, device);
  // Along the outermost dimension that can be cut: the rest of the piece stays as dense as it is.
  const Extents& shape = host.view.shape;
  int axis = 0;
  while (shape[axis] == 1) ++axis;
  const std::int64_t slice_bytes = bytes / shape[axis];
  const std::int64_t points = std::max<std::int64_t>(1, kStagingBytes / slice_bytes);
  for (std::int64_t start = 0; start < shape[axis]; start += points) {
    const std::int64_t stop = std::min(start + points, shape[axis]);
    if (absl::Status status =
            in_pieces(part_of(host, axis, start, stop), part_of(device, axis, start, stop), work);
        !status.ok()) {
      return status;
    }
  }
  return absl::OkStatus();
}

absl::Status pack_to_device(DeviceDriver& driver, const Staging& staging,
                            const SideElements& device, const SideElements& host,
                            StreamHandle stream) {
  const StridedView dense = *loops::packed(host.view);
  // The memory may be that of the piece before.
  if (absl::Status status = driver.synchronize(stream); !status.ok()) return status;
  if (absl::Status status = copy_elements(staging.pinned.data(), dense, host.block, host.view);
      !status.ok()) {
    return status;
  }
  if (absl::Status status =
          driver.copy(staging.device.data(), staging.pinned.data(), bytes_of(dense), stream);
      !status.ok()) {
    return status;
  }
  return copy_elements_on(driver, device.block, device.view, staging.device.data(), dense, stream);
}

absl::Status pack_to_host(DeviceDriver& driver, const Staging& staging, const SideElements& host,
                          const SideElements& device, StreamHandle stream) {
  const StridedView dense = *loops::packed(host.view);
  if (absl::Status status =
          copy_elements_on(driver, staging.device.data(), dense, device.block, device.view, stream);
      !status.ok()) {
    return status;
  }
  if (absl::Status status =
          driver.copy(staging.pinned.data(), staging.device.data(), bytes_of(dense), stream);
      !status.ok()) {
    return status;
  }
  if (absl::Status status = driver.synchronize(stream); !status.ok()) return status;
  return copy_elements(host.block, host.view, staging.pinned.data(), dense);
}

}  // namespace

absl::Status copy_to_device(DeviceDriver& driver, const SideElements& device,
                            const SideElements& host, StreamHandle stream) {
  // What is wrong with unsound views is said by copy_elements_on.
  if (packs_on_host(device, host, host.view)) {
    absl::StatusOr<std::optional<Staging>> staging =
        make_staging(driver, bytes_of(host.view), stream);
    if (!staging.ok()) return staging.status();
    if (*staging) {
      return in_pieces(in_order_of(host.view, host), in_order_of(host.view, device),
                       [&](const SideElements& from, const SideElements& to) {
                         return pack_to_device(driver, **staging, to, from, stream);
                       });
    }
  }
  return copy_elements_on(driver, device.block, device.view, host.block, host.view, stream);
}

absl::Status copy_to_host(DeviceDriver& driver, const SideElements& host,
                          const SideElements& device, StreamHandle stream) {
  if (packs_on_host(host, device, host.view)) {
    absl::StatusOr<std::optional<Staging>> staging =
        make_staging(driver, bytes_of(host.view), stream);
    if (!staging.ok()) return staging.status();
    if (*staging) {
      return in_pieces(in_order_of(host.view, host), in_order_of(host.view, device),
                       [&](const SideElements& to, const SideElements& from) {
                         return pack_to_host(driver, **staging, to, from, stream);
                       });
    }
  }
  return copy_elements_on(driver, host.block, host.view, device.block, device.view, stream);
}

}  // namespace gridbuf
