module;

#include <atomic>
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

import gridbuf.base;
import gridbuf.device;
import gridbuf.transfer.device;
import gridbuf.transfer;

// Accesses, exports and transfers.

namespace gridbuf {
namespace {

using Lock = std::lock_guard<std::recursive_mutex>;

}  // namespace

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
  const StorageBase& base = *base_;
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
  const StorageBase& base = *base_;
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
  const StorageBase& base = *base_;
  if (base.of(side).readonly) {
    return make_error(ErrorClass::kValue, {"the " + std::string(to_string(side)) + "'s buffer",
                                           "read-only", "writable", "write to a copy()"});
  }
  // Noted at both ends: who takes a record in between has not seen all of it.
  if (base.is_recorded()) note_written();
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

void Storage::end_write(Side side) const noexcept {
  if (base_->is_recorded()) note_written();
  // Another thread has moved on to a stream that does not follow what was enqueued on this one.
  if (side == Side::kDevice && base_->order != nullptr &&
      base_->order->stream.load() != current_stream()) {
    base_->order->foreign_work = true;
  }
  if (base_->sync != nullptr) base_->sync->note_written(side, hull());
  if (base_->kind == StorageKind::kCudaManaged && side == Side::kDevice) base_->order->busy = true;
}

// --- Exports -------------------------------------------------------------------------------------

// A share in the memory that counts while it lives: as an export that may be written on this side,
// or for records of writes alone.
class Storage::ExportShare {
 public:
  ExportShare(const Storage& storage, Side side, bool is_export)
      : base_(storage.base_), side_(side), box_(storage.hull()), is_export_(is_export) {
    if (is_export_) base_->add_export(side_, box_);
    is_logged_ = base_->log_export(box_);
  }
  ~ExportShare() {
    if (is_export_) base_->drop_export(side_, box_);
    base_->unlog_export(box_, is_logged_);
  }
  ExportShare(const ExportShare&) = delete;
  ExportShare& operator=(const ExportShare&) = delete;

 private:
  BasePtr base_;
  Side side_;
  Box box_;
  bool is_export_;
  bool is_logged_ = false;
};

bool Storage::add_export(Side side) const noexcept {
  // Most exports are made here; the box is worked out where somebody wants to know it.
  if (base_->kind == StorageKind::kCpu && base_->count_export()) return false;
  const Box box = hull();
  base_->add_export(side, box);
  return base_->log_export(box);
}

void Storage::drop_export(Side side, bool is_logged) const noexcept {
  if (base_->kind == StorageKind::kCpu && !is_logged) return base_->uncount_export();
  const Box box = hull();
  base_->drop_export(side, box);
  base_->unlog_export(box, is_logged);
}

void Storage::note_unknown_export(Side side) const noexcept {
  if (base_->sync != nullptr) base_->sync->keep_export(side, hull());
  if (base_->kind == StorageKind::kCudaManaged && side == Side::kDevice) {
    ++base_->order->device_exports;
  }
  base_->log_unknown_export(hull());
}

absl::StatusOr<Owner> Storage::share(Side side, bool is_export) const {
  try {
    return Owner(std::make_shared<ExportShare>(*this, side, is_export));
  } catch (const std::bad_alloc&) {
    return make_error(ErrorClass::kMemory,
                      "no memory for the owner of an export; free some arrays and try again");
  }
}

absl::StatusOr<Owner> Storage::export_side(Side side, bool writable) const {
  if (absl::Status status = read(side); !status.ok()) return status;
  if (!writable || base_->of(side).readonly) return base_->of(side).owner;
  const bool has_one_side = base_->kind == StorageKind::kCpu || base_->kind == StorageKind::kGpu;
  return has_one_side ? lend(side) : share(side, /*is_export=*/true);
}

// --- Records of writes ---------------------------------------------------------------------------

absl::StatusOr<Owner> Storage::lend(Side side) const {
  // A plain share is seen by whoever begins to record while it lives, so it is taken first.
  Owner plain = base_->of(side).owner;
  std::atomic_thread_fence(std::memory_order_seq_cst);
  if (!base_->is_recorded()) return plain;
  return share(side, /*is_export=*/false);
}

absl::StatusOr<std::unique_ptr<WriteRecord>> Storage::record_writes(Presume presume) const {
  const absl::StatusOr<WriteLog*> log = base_->write_log();
  if (!log.ok()) return log.status();
  return WriteRecord::begin(std::shared_ptr<WriteLog>(base_, *log), window_, presume);
}

bool Storage::is_recorded_by(const WriteRecord& record) const noexcept {
  return record.is_of(base_->known_log(), window_);
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
  const absl::Status brought = base_->bring_all(target, force);
  // What the target had that was newer is gone: its elements have changed.
  if (force) base_->note_written(whole_box(base_->host.view.shape));
  if (!brought.ok()) return brought;
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
  if (base_->is_recorded()) note_written();
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
  if (base_->sync == nullptr) return;
  base_->sync->set_clean();
  // One side is given up wherever they differed, and who reads that side now reads other values.
  base_->note_written(whole_box(base_->host.view.shape));
}

// --- Copies --------------------------------------------------------------------------------------

absl::StatusOr<Storage> Storage::copy() const {
  const absl::StatusOr<Layout> plan = make_plan({.shape = shape(),
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

namespace {

absl::Status copy_between(DeviceDriver& driver, Side to_side, const BufferDescriptor& to,
                          Side from_side, const BufferDescriptor& from) {
  const StreamHandle stream = current_stream();
  if (to_side == from_side) {
    return copy_elements_on(driver, to.block, to.view, from.block, from.view, stream);
  }
  const SideElements target{to.block, to.view};
  const SideElements source{from.block, from.view};
  return to_side == Side::kDevice ? copy_to_device(driver, target, source, stream)
                                  : copy_to_host(driver, target, source, stream);
}

}  // namespace

// At least one of the two is a device's.
absl::Status Storage::copy_by_device(const Storage& source) const {
  const Side to_side = has(Side::kDevice) ? Side::kDevice : Side::kHost;
  const Side from_side = source.has(Side::kDevice) ? Side::kDevice : Side::kHost;
  if (absl::Status status = source.read(from_side); !status.ok()) return status;
  if (absl::Status status = begin_write(to_side, Coverage::kAll); !status.ok()) return status;
  DeviceDriver& driver = *(to_side == Side::kDevice ? base_ : source.base_)->driver;
  const BufferDescriptor to = memory(to_side);
  const BufferDescriptor from = source.memory(from_side);
  absl::Status status = copy_between(driver, to_side, to, from_side, from);
  if (status.ok() && to_side != from_side) status = driver.synchronize(current_stream());
  end_write(to_side);
  return status;
}

}  // namespace gridbuf
