module;

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <new>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "modules/base/status_macros.h"

module gridbuf.storage;

import gridbuf.alloc.host;
import gridbuf.base;
import gridbuf.transfer.device;

namespace gridbuf {

std::string_view to_string(StorageKind kind) {
  constexpr std::array<std::string_view, 4> kNames{"CPU", "GPU", "software-managed GPU",
                                                   "CUDA-managed GPU"};
  return kNames[static_cast<std::size_t>(kind)];
}

namespace {

absl::Status no_memory() {
  return make_error(ErrorClass::kMemory,
                    "no memory for the state of a storage; free some arrays and try again");
}

// A transfer is under way while it lives.
class Copying {
 public:
  explicit Copying(DeviceOrder& order) : order_(order) { order_.copying = true; }
  ~Copying() { order_.copying = false; }
  Copying(const Copying&) = delete;
  Copying& operator=(const Copying&) = delete;

 private:
  DeviceOrder& order_;
};

}  // namespace

// --- The base ------------------------------------------------------------------------------------

absl::StatusOr<std::shared_ptr<StorageBase>> StorageBase::make(StorageKind kind) {
  try {
    return std::make_shared<StorageBase>(kind);
  } catch (const std::bad_alloc&) {
    return no_memory();
  }
}

bool StorageBase::has(Side side) const {
  return side == Side::kHost ? kind != StorageKind::kGpu : kind != StorageKind::kCpu;
}

absl::Status StorageBase::start() {
  if (kind == StorageKind::kCpu) return absl::OkStatus();
  try {
    if (kind == StorageKind::kSoftwareManaged) {
      if (sync == nullptr) sync = std::make_shared<SyncState>(kSyncClean);
      GRIDBUF_RETURN_IF_ERROR(attach());
      order = std::shared_ptr<DeviceOrder>(sync, &sync->order());
    } else {
      order = std::make_shared<DeviceOrder>();
    }
  } catch (const std::bad_alloc&) {
    return no_memory();
  }
  return absl::OkStatus();
}

absl::Status StorageBase::attach() {
  SyncedBuffers buffers;
  buffers.shape = first.shape();
  buffers.itemsize_bytes = first.memory().view.itemsize_bytes;
  for (const Side side : {Side::kHost, Side::kDevice}) {
    const auto position = static_cast<std::size_t>(side);
    buffers.first_element[position] = of(side).first_element();
    buffers.strides_bytes[position] = of(side).view.strides_bytes;
  }
  return sync->attach(buffers);
}

// --- Exports ------------------------------------------------------------------------------------

void StorageBase::add_export(Side side, const Box& box) const noexcept {
  if (sync != nullptr) sync->add_export(side, box);
  if (kind == StorageKind::kCudaManaged && side == Side::kDevice) ++order->device_exports;
}

// Work that the holder enqueued on the device may still be pending.
void StorageBase::drop_export(Side side, const Box& box) const noexcept {
  if (side == Side::kDevice && order != nullptr) order->foreign_work = true;
  if (sync != nullptr) sync->drop_export(side, box);
  if (kind == StorageKind::kCudaManaged && side == Side::kDevice) --order->device_exports;
}

// --- Order on the device -------------------------------------------------------------------------

// Work on the current stream comes after the last work. Hold *order.
absl::Status StorageBase::enter_stream() const {
  const StreamHandle current = current_stream();
  const StreamHandle last = order->stream;
  if (current == last) return absl::OkStatus();
  GRIDBUF_RETURN_IF_ERROR(driver->check_stream(current));
  // First, because end_write reads it: a thread that finds its stream here has enqueued its work
  // before the next line orders it.
  order->stream = current;
  absl::Status status = driver->order_after(last, current);
  if (!status.ok() && !driver->check_stream(last).ok()) {
    // The last stream may have been destroyed. So this waits for its work with all other work.
    status = driver->synchronize_device();
  }
  if (!status.ok()) {
    order->stream = last;
    return status;
  }
  driver->note_use(first.memory().block, current);
  if (second != nullptr) driver->note_use(second->memory().block, current);
  return absl::OkStatus();
}

// Waits for foreign work on any stream. Hold *order.
absl::Status StorageBase::wait_for_foreign_work() const {
  const bool exported =
      sync != nullptr ? sync->has_exports(Side::kDevice) : order->device_exports.load() > 0;
  // Cleared before the wait, because work that another thread enqueues meanwhile sets it again.
  if (!order->foreign_work.exchange(false) && !exported) return absl::OkStatus();
  absl::Status status = driver->synchronize_device();
  if (!status.ok()) order->foreign_work = true;
  return status;
}

// Managed memory: the host waits for the device's work on it. Hold *order.
absl::Status StorageBase::wait_for_device() const {
  GRIDBUF_RETURN_IF_ERROR(wait_for_foreign_work());
  if (order->busy) {
    GRIDBUF_RETURN_IF_ERROR(driver->synchronize(order->stream));
  }
  order->busy = order->device_exports.load() > 0;
  return absl::OkStatus();
}

// Waits for the work that a failed transfer has left. Hold *order.
absl::Status StorageBase::finish() const {
  if (!order->unfinished) return absl::OkStatus();
  GRIDBUF_RETURN_IF_ERROR(driver->synchronize(order->stream));
  order->unfinished = false;
  return absl::OkStatus();
}

// --- Transfers -----------------------------------------------------------------------------------

StridedView StorageBase::box_view(const Box& box, Side side) const {
  const StridedView& whole = of(side).view;
  if (whole.ndim() == 0) return whole;
  StridedView view{box.lower, whole.strides_bytes, byte_offset(whole, box.lower),
                   whole.itemsize_bytes};
  for (int axis = 0; axis < view.ndim(); ++axis)
    view.shape[axis] = box.upper[axis] - box.lower[axis];
  return view;
}

absl::Status StorageBase::copy_box(const Box& box, Side target) const {
  const BufferDescriptor& to = of(target);
  const BufferDescriptor& from = of(other(target));
  const StreamHandle stream = order->stream;
  const bool whole = box == whole_box(first.shape());
  if (whole && common_bytes > 0 && !host_resource().poisons()) {
    return driver->copy(to.block, from.block, common_bytes, stream);
  }
  const ElementParts* const parts = owns_gaps ? nullptr : to.dtype.parts();
  return copy_elements_on(*driver, to.block, box_view(box, target), from.block,
                          box_view(box, other(target)), stream, parts);
}

// Hold *order.
absl::Status StorageBase::carry_out(const TransferPlan& plan) const {
  if (plan.boxes.empty()) return absl::OkStatus();
  if (order->copying) {
    return make_error(ErrorClass::kInternal,
                      "a kernel of the emulated device asks for elements of a storage that waits "
                      "for it, which would never end; ask before the kernel, as CUDA demands");
  }
  if (of(plan.target).readonly) {
    return make_error(ErrorClass::kValue,
                      {"the " + std::string(to_string(plan.target)) + "'s buffer", "read-only",
                       "writable to be brought up to date", "wrap writable memory"});
  }
  // The error in a child after fork, where nothing is enqueued that a later access must wait for.
  GRIDBUF_RETURN_IF_ERROR(driver->current_device().status());
  GRIDBUF_RETURN_IF_ERROR(enter_stream());
  GRIDBUF_RETURN_IF_ERROR(wait_for_foreign_work());
  const Copying copying(*order);
  order->unfinished = true;
  absl::Status status;
  for (const Box& box : plan.boxes) {
    if (status.ok()) status = copy_box(box, plan.target);
  }
  // Waits even after an error, because enqueued work must not write later.
  const absl::Status waited = driver->synchronize(order->stream);
  if (waited.ok()) order->unfinished = false;
  return status.ok() ? waited : status;
}

// Repeats if the source was marked during the copy. Bounded, because another thread may mark it all
// the time.
absl::Status StorageBase::bring(Side target, const Box& hull) const {
  constexpr int kPatience = 16;
  try {
    Box wanted = hull;
    for (int round = 0; round < kPatience; ++round) {
      const TransferPlan plan = sync->plan(target, wanted);
      GRIDBUF_RETURN_IF_ERROR(carry_out(plan));
      const SyncState::Commit commit = sync->commit(plan);
      if (commit == SyncState::Commit::kDone) break;
      if (commit == SyncState::Commit::kFull) wanted = whole_box(first.shape());
    }
    return absl::OkStatus();
  } catch (const std::bad_alloc&) {
    return no_memory();
  }
}

absl::Status StorageBase::bring_all(Side target, bool force) const {
  const Box whole = whole_box(first.shape());
  if (!force) return bring(target, whole);
  if (is_empty(whole)) return absl::OkStatus();
  try {
    TransferPlan plan{.target = target, .hull = whole};
    plan.boxes.push_back(whole);
    GRIDBUF_RETURN_IF_ERROR(carry_out(plan));
  } catch (const std::bad_alloc&) {
    return no_memory();
  }
  sync->set_clean();
  return absl::OkStatus();
}

// Hold *order.
absl::Status StorageBase::empty_out(Side side) const {
  return bring(other(side), whole_box(first.shape()));
}

}  // namespace gridbuf
