module;

#include <cstdint>
#include <memory>
#include <mutex>
#include <new>
#include <optional>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

module gridbuf.storage;

import gridbuf.alloc.devices;
import gridbuf.alloc.host;
import gridbuf.error;
import gridbuf.transfer;
import gridbuf.transfer.boxes;
import gridbuf.transfer.device;

// Accesses, exports and transfers.

namespace gridbuf {
namespace {

using Lock = std::lock_guard<std::mutex>;

absl::Status no_memory() {
  return make_error(ErrorClass::kMemory,
                    "no memory for planning a transfer; free some arrays and try again");
}

}  // namespace

// --- Order on the device -------------------------------------------------------------------------

// Work on the current stream comes after what was done last. Hold order->transfers.
absl::Status Storage::Base::enter_stream() const {
  const StreamHandle current = current_stream();
  const StreamHandle last = order->stream;
  if (current == last) return absl::OkStatus();
  if (absl::Status status = driver->check_stream(current); !status.ok()) return status;
  if (absl::Status status = driver->order_after(last, current); !status.ok()) {
    // The last stream may have been destroyed. What it had to do is waited for with all the rest.
    if (driver->check_stream(last).ok()) return status;
    if (absl::Status waited = driver->synchronize_device(); !waited.ok()) return waited;
  }
  driver->note_use(device.block, current);
  if (host.block != device.block) driver->note_use(host.block, current);
  order->stream = current;
  return absl::OkStatus();
}

// What others have enqueued, on whatever stream. Hold order->transfers.
absl::Status Storage::Base::wait_for_foreign_work() const {
  const bool exported =
      sync != nullptr ? sync->has_exports(Side::kDevice) : order->device_exports.load() > 0;
  if (!exported && !order->foreign_work) return absl::OkStatus();
  if (absl::Status status = driver->synchronize_device(); !status.ok()) return status;
  order->foreign_work = false;
  return absl::OkStatus();
}

// Managed memory: the host waits for what the device does with it. Hold order->transfers.
absl::Status Storage::Base::wait_for_device() const {
  if (absl::Status status = wait_for_foreign_work(); !status.ok()) return status;
  if (order->busy) {
    if (absl::Status status = driver->synchronize(order->stream); !status.ok()) return status;
  }
  order->busy = order->device_exports.load() > 0;
  return absl::OkStatus();
}

// What a transfer that failed has left behind. Hold order->transfers.
absl::Status Storage::Base::finish() const {
  if (!order->unfinished) return absl::OkStatus();
  if (absl::Status status = driver->synchronize(order->stream); !status.ok()) return status;
  order->unfinished = false;
  return absl::OkStatus();
}

// --- Transfers -----------------------------------------------------------------------------------

StridedView Storage::Base::box_view(const Box& box, Side side) const {
  const StridedView& whole = of(side).view;
  StridedView view{box.lower, whole.strides_bytes, byte_offset(whole, box.lower),
                   whole.itemsize_bytes};
  for (int axis = 0; axis < view.ndim(); ++axis)
    view.shape[axis] = box.upper[axis] - box.lower[axis];
  return view;
}

absl::Status Storage::Base::copy_box(const Box& box, Side target) const {
  const Buffer& to = of(target);
  const Buffer& from = of(other(target));
  const StreamHandle stream = order->stream;
  const bool whole = box == whole_box(host.view.shape);
  if (whole && common_bytes > 0 && !host_resource().poisons()) {
    return driver->copy(to.block, from.block, common_bytes, stream);
  }
  const SideElements on_host{host.block, box_view(box, Side::kHost)};
  const SideElements on_device{device.block, box_view(box, Side::kDevice)};
  return target == Side::kHost ? copy_to_host(*driver, on_host, on_device, stream)
                               : copy_to_device(*driver, on_device, on_host, stream);
}

// Hold order->transfers.
absl::Status Storage::Base::carry_out(const TransferPlan& plan) const {
  if (plan.boxes.empty()) return absl::OkStatus();
  if (of(plan.target).readonly) {
    return make_error(ErrorClass::kValue,
                      {"the " + std::string(to_string(plan.target)) + "'s buffer", "read-only",
                       "writable to be brought up to date", "wrap writable memory"});
  }
  if (absl::Status status = enter_stream(); !status.ok()) return status;
  if (absl::Status status = wait_for_foreign_work(); !status.ok()) return status;
  order->unfinished = true;
  absl::Status status;
  for (const Box& box : plan.boxes) {
    if (status.ok()) status = copy_box(box, plan.target);
  }
  // Waited for in any case: what has been enqueued must not write when nobody expects it.
  const absl::Status waited = driver->synchronize(order->stream);
  if (waited.ok()) order->unfinished = false;
  return status.ok() ? waited : status;
}

// Again if the source was marked while it was copied; a thread that marks it all the time is not
// waited for, as its order and ours are no business of anybody's.
absl::Status Storage::Base::bring(Side target, const Box& hull) const {
  constexpr int kPatience = 16;
  try {
    Box wanted = hull;
    for (int round = 0; round < kPatience; ++round) {
      const TransferPlan plan = sync->plan(target, wanted);
      if (absl::Status status = carry_out(plan); !status.ok()) return status;
      const SyncState::Commit commit = sync->commit(plan);
      if (commit == SyncState::Commit::kDone) break;
      if (commit == SyncState::Commit::kFull) wanted = whole_box(host.view.shape);
    }
    return absl::OkStatus();
  } catch (const std::bad_alloc&) {
    return no_memory();
  }
}

absl::Status Storage::Base::bring_all(Side target, bool force) const {
  const Box whole = whole_box(host.view.shape);
  if (!force) return bring(target, whole);
  if (is_empty(whole)) return absl::OkStatus();
  try {
    TransferPlan plan{.target = target, .hull = whole};
    plan.boxes.push_back(whole);
    if (absl::Status status = carry_out(plan); !status.ok()) return status;
  } catch (const std::bad_alloc&) {
    return no_memory();
  }
  sync->set_clean();
  return absl::OkStatus();
}

// --- Accesses ------------------------------------------------------------------------------------

absl::Status Storage::check_side(Side side) const {
  if (has(side)) return absl::OkStatus();
  const bool host = side == Side::kHost;
  return make_error(ErrorClass::kNoSuchBuffer,
                    {"a " + std::string(to_string(kind())) + " storage",
                     host ? "without a host buffer" : "without a device buffer",
                     host ? "a CPU or managed storage to be read on the host"
                          : "a GPU storage to be used on a device",
                     host ? "call to_cupy(), or copy it to a storage with a host buffer"
                          : "call to_numpy(), or copy it to a storage of the device"});
}

bool Storage::is_ready(Side side) const noexcept {
  const Base& base = *base_;
  if (base.kind == StorageKind::kCpu) return side == Side::kHost;
  if (!has(side) || base.order->unfinished) return false;
  if (side == Side::kDevice && base.order->stream.load() != current_stream()) return false;
  if (base.kind == StorageKind::kSoftwareManaged) return base.sync->is_current(side, hull());
  if (base.kind == StorageKind::kGpu) return true;
  if (side == Side::kHost) {
    return !base.order->busy && !base.order->foreign_work && base.order->device_exports.load() == 0;
  }
  return base.order->busy;
}

bool Storage::is_current(Side side) const {
  return base_->kind == StorageKind::kSoftwareManaged ? base_->sync->is_current(side, hull())
                                                      : has(side);
}

absl::Status Storage::prepare(Side side) const {
  const Base& base = *base_;
  if (base.kind == StorageKind::kCpu) return absl::OkStatus();
  if (side == Side::kDevice) {
    if (absl::Status status = base.enter_stream(); !status.ok()) return status;
    if (base.kind == StorageKind::kCudaManaged) base.order->busy = true;
    return absl::OkStatus();
  }
  return base.kind == StorageKind::kCudaManaged ? base.wait_for_device() : absl::OkStatus();
}

absl::Status Storage::read(Side side) const {
  if (absl::Status status = check_side(side); !status.ok()) return status;
  if (is_ready(side)) return absl::OkStatus();
  const Lock lock(base_->order->transfers);
  if (absl::Status status = base_->finish(); !status.ok()) return status;
  if (base_->sync != nullptr) {
    if (absl::Status status = base_->bring(side, hull()); !status.ok()) return status;
  }
  return prepare(side);
}

absl::Status Storage::begin_write(Side side, Coverage coverage) const {
  if (absl::Status status = check_side(side); !status.ok()) return status;
  const Base& base = *base_;
  if (base.of(side).readonly) {
    return make_error(ErrorClass::kValue, {"the " + std::string(to_string(side)) + "'s buffer",
                                           "read-only", "writable", "write to a copy()"});
  }
  if (base.sync == nullptr) return read(side);
  const Box box = hull();
  if (is_empty(box)) return absl::OkStatus();
  if (coverage == Coverage::kPart || !window_.is_dense()) {
    if (absl::Status status = read(side); !status.ok()) return status;
  } else if (base.order->unfinished ||
             (side == Side::kDevice && base.order->stream.load() != current_stream())) {
    const Lock lock(base.order->transfers);
    if (absl::Status status = base.finish(); !status.ok()) return status;
    if (absl::Status status = prepare(side); !status.ok()) return status;
  }
  return take_over(side, box);
}

absl::Status Storage::take_over(Side side, const Box& box) const {
  while (const std::optional<Side> full = base_->sync->take_over(side, box)) {
    const Lock lock(base_->order->transfers);
    if (absl::Status status = base_->empty_out(*full); !status.ok()) return status;
  }
  return absl::OkStatus();
}

// Copies a side's dirt to the other side, so that it has none. Hold order->transfers.
absl::Status Storage::Base::empty_out(Side side) const {
  return bring(other(side), whole_box(host.view.shape));
}

void Storage::end_write(Side side) const noexcept {
  // Another thread has moved on to a stream that does not follow what was enqueued on this one.
  if (side == Side::kDevice && base_->order != nullptr &&
      base_->order->stream.load() != current_stream()) {
    base_->order->foreign_work = true;
  }
  if (base_->sync != nullptr) base_->sync->note_written(side, hull());
  if (base_->kind == StorageKind::kCudaManaged && side == Side::kDevice) base_->order->busy = true;
}

// --- Exports -------------------------------------------------------------------------------------

// A share in the memory that counts as an export.
class Storage::ExportShare {
 public:
  ExportShare(const Storage& storage, Side side)
      : base_(storage.base_), side_(side), box_(storage.hull()) {
    base_->add_export(side_, box_);
  }
  ~ExportShare() { base_->drop_export(side_, box_); }
  ExportShare(const ExportShare&) = delete;
  ExportShare& operator=(const ExportShare&) = delete;

 private:
  BasePtr base_;
  Side side_;
  Box box_;
};

void Storage::Base::add_export(Side side, const Box& box) const noexcept {
  if (sync != nullptr) sync->add_export(side, box);
  if (kind == StorageKind::kCudaManaged && side == Side::kDevice) ++order->device_exports;
}

// What the holder has enqueued on the device is still to be waited for.
void Storage::Base::drop_export(Side side, const Box& box) const noexcept {
  if (side == Side::kDevice && order != nullptr) order->foreign_work = true;
  if (sync != nullptr) sync->drop_export(side, box);
  if (kind == StorageKind::kCudaManaged && side == Side::kDevice) --order->device_exports;
}

void Storage::add_export(Side side) const noexcept { base_->add_export(side, hull()); }
void Storage::drop_export(Side side) const noexcept { base_->drop_export(side, hull()); }

void Storage::note_unknown_export(Side side) const noexcept {
  if (base_->sync != nullptr) base_->sync->keep_export(side, hull());
  if (base_->kind == StorageKind::kCudaManaged && side == Side::kDevice) {
    ++base_->order->device_exports;
  }
}

absl::StatusOr<Owner> Storage::export_side(Side side, bool writable) const {
  if (absl::Status status = read(side); !status.ok()) return status;
  const bool counts = writable && !base_->of(side).readonly && base_->kind != StorageKind::kCpu &&
                      base_->kind != StorageKind::kGpu;
  if (!counts) return base_->of(side).owner;
  try {
    return Owner(std::make_shared<ExportShare>(*this, side));
  } catch (const std::bad_alloc&) {
    return make_error(ErrorClass::kMemory,
                      "no memory for the owner of an export; free some arrays and try again");
  }
}

// --- The whole base ------------------------------------------------------------------------------

absl::Status Storage::transfer(Side target, bool force) const {
  if (base_->sync == nullptr) return absl::OkStatus();
  const bool on_another_stream =
      target == Side::kDevice && base_->order->stream.load() != current_stream();
  if (!force && !on_another_stream && base_->sync->is_surely_current(target)) {
    return absl::OkStatus();
  }
  const Lock lock(base_->order->transfers);
  if (absl::Status status = base_->bring_all(target, force); !status.ok()) return status;
  return on_another_stream ? base_->enter_stream() : absl::OkStatus();
}

absl::Status Storage::device_to_host(bool force) const { return transfer(Side::kHost, force); }
absl::Status Storage::host_to_device(bool force) const { return transfer(Side::kDevice, force); }

absl::Status Storage::synchronize() const {
  if (absl::Status status = device_to_host(); !status.ok()) return status;
  return host_to_device();
}

absl::Status Storage::mark(Side side) const {
  // Who says so may have used any stream; in managed memory that is all there is to remember.
  if (side == Side::kDevice && base_->order != nullptr) base_->order->foreign_work = true;
  if (base_->sync == nullptr) return absl::OkStatus();
  const Box box = hull();
  if (is_empty(box)) return absl::OkStatus();
  while (true) {
    const absl::StatusOr<bool> marked = base_->sync->mark(side, box);
    if (!marked.ok()) return marked.status();
    if (*marked) return absl::OkStatus();
    const Lock lock(base_->order->transfers);
    if (absl::Status status = base_->empty_out(side); !status.ok()) return status;
  }
}

absl::Status Storage::set_host_modified() const { return mark(Side::kHost); }
absl::Status Storage::set_device_modified() const { return mark(Side::kDevice); }
void Storage::set_synchronized() const {
  if (base_->sync != nullptr) base_->sync->set_clean();
}

// --- Copies --------------------------------------------------------------------------------------

absl::StatusOr<Storage> Storage::copy() const {
  const absl::StatusOr<LayoutPlan> plan =
      make_plan({.shape = shape(),
                 .itemsize_bytes = base_->dtype.itemsize_bytes(),
                 .layout = layout_,
                 .alignment_bytes = seen_.alignment_bytes,
                 .aligned_index = seen_.aligned_index});
  if (!plan.ok()) return plan.status();
  const bool padded = plan->total_bytes() != plan->nbytes();
  const absl::StatusOr<Storage> made = allocate({.plan = *plan,
                                                 .dims = seen_.dims,
                                                 .halo = seen_.halo,
                                                 .dtype = base_->dtype,
                                                 .kind = base_->kind,
                                                 .zeroed = padded});
  if (!made.ok()) return made.status();
  if (absl::Status status = made->copy_from(*this); !status.ok()) return status;
  return made;
}

absl::Status Storage::copy_from(const Storage& source) const {
  if (shape() != source.shape() ||
      base_->dtype.itemsize_bytes() != source.dtype().itemsize_bytes()) {
    return make_error(ErrorClass::kValue,
                      {"the source", to_string(source.seen_.memory),
                       "of the target's shape and item size, " + to_string(seen_.memory),
                       "broadcast or convert it first"});
  }
  const bool both_host = has(Side::kHost) && source.has(Side::kHost);
  const bool both_device = has(Side::kDevice) && source.has(Side::kDevice);
  if (both_host && (!both_device || source.is_current(Side::kHost))) {
    return copy_on_host(source);
  }
  return copy_by_device(source);
}

absl::Status Storage::copy_on_host(const Storage& source) const {
  if (absl::Status status = source.read(Side::kHost); !status.ok()) return status;
  if (absl::Status status = begin_write(Side::kHost, Coverage::kAll); !status.ok()) return status;
  const BufferDescriptor to = memory(Side::kHost);
  const BufferDescriptor from = source.memory(Side::kHost);
  const absl::Status status = copy_elements(to.block, to.view, from.block, from.view);
  end_write(Side::kHost);
  return status;
}

// At least one of the two is a device's.
absl::Status Storage::copy_by_device(const Storage& source) const {
  const Side to_side = has(Side::kDevice) ? Side::kDevice : Side::kHost;
  const Side from_side = source.has(Side::kDevice) ? Side::kDevice : Side::kHost;
  if (absl::Status status = source.read(from_side); !status.ok()) return status;
  if (absl::Status status = begin_write(to_side, Coverage::kAll); !status.ok()) return status;
  DeviceDriver& driver = *(to_side == Side::kDevice ? base_ : source.base_)->driver;
  const BufferDescriptor to = memory(to_side);
  const BufferDescriptor from = source.memory(from_side);
  absl::Status status =
      copy_elements_on(driver, to.block, to.view, from.block, from.view, current_stream());
  if (status.ok() && to_side != from_side) status = driver.synchronize(current_stream());
  end_write(to_side);
  return status;
}

}  // namespace gridbuf
