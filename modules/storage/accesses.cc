module;

#include <memory>
#include <mutex>
#include <new>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "modules/base/status_macros.h"

module gridbuf.storage;

import gridbuf.base;
import gridbuf.device;

// Accesses, exports, transfers and guards.

namespace gridbuf {
namespace {

using Lock = std::lock_guard<DeviceOrder>;

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
    GRIDBUF_RETURN_IF_ERROR(base.enter_stream());
    if (base.kind == StorageKind::kCudaManaged) base.order->busy = true;
    return absl::OkStatus();
  }
  return base.kind == StorageKind::kCudaManaged ? base.wait_for_device() : absl::OkStatus();
}

absl::Status Storage::read(Side side) const {
  GRIDBUF_RETURN_IF_ERROR(check_side(side));
  if (is_ready(side)) return absl::OkStatus();
  const Lock lock(*base_->order);
  GRIDBUF_RETURN_IF_ERROR(base_->finish());
  if (base_->sync != nullptr) {
    GRIDBUF_RETURN_IF_ERROR(base_->bring(side, hull()));
  }
  return prepare(side);
}

absl::Status Storage::begin_write(Side side, Coverage coverage, bool is_noted) const {
  GRIDBUF_RETURN_IF_ERROR(check_side(side));
  const StorageBase& base = *base_;
  if (base.of(side).readonly) {
    return make_error(ErrorClass::kValue, {"the " + std::string(to_string(side)) + "'s buffer",
                                           "read-only", "writable", "write to a copy()"});
  }
  if (!is_noted) note_written();
  if (base.sync == nullptr) return read(side);
  const Box box = hull();
  if (is_empty(box)) return absl::OkStatus();
  // Held until the box is taken over. Else another thread's transfer, planned before or in between,
  // could write to the box.
  const Lock lock(*base.order);
  if (coverage == Coverage::kPart || !is_dense(map_)) {
    GRIDBUF_RETURN_IF_ERROR(read(side));
  } else {
    GRIDBUF_RETURN_IF_ERROR(base.finish());
    if (side == Side::kDevice) {
      GRIDBUF_RETURN_IF_ERROR(prepare(side));
    }
  }
  return take_over(side, box);
}

absl::Status Storage::take_over(Side side, const Box& box) const {
  while (const std::optional<Side> full = base_->sync->take_over(side, box)) {
    const Lock lock(*base_->order);
    GRIDBUF_RETURN_IF_ERROR(base_->empty_out(*full));
  }
  return absl::OkStatus();
}

void Storage::end_write(Side side) const noexcept {
  // Another thread may have changed to a stream that is not ordered after this work.
  if (side == Side::kDevice && base_->order != nullptr &&
      base_->order->stream.load() != current_stream()) {
    base_->order->foreign_work = true;
  }
  if (base_->sync != nullptr) base_->sync->note_written(side, hull());
  if (base_->kind == StorageKind::kCudaManaged && side == Side::kDevice) base_->order->busy = true;
}

// --- Exports -------------------------------------------------------------------------------------

// A share in the memory that counts as a writable export of this side while it lives.
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
  std::shared_ptr<const StorageBase> base_;
  Side side_;
  Box box_;
};

// Most exports are of host storages, which do not count them.
void Storage::add_export(Side side) const noexcept {
  note_exported();
  if (base_->kind != StorageKind::kCpu) base_->add_export(side, hull());
}

void Storage::drop_export(Side side) const noexcept {
  if (base_->kind != StorageKind::kCpu) base_->drop_export(side, hull());
}

void Storage::note_unknown_export(Side side) const noexcept {
  note_exported();
  if (base_->sync != nullptr) base_->sync->keep_export(side, hull());
  if (base_->kind == StorageKind::kCudaManaged && side == Side::kDevice) {
    ++base_->order->device_exports;
  }
}

absl::StatusOr<Owner> Storage::export_side(Side side, bool writable) const {
  GRIDBUF_RETURN_IF_ERROR(read(side));
  if (writable) note_exported();
  const bool has_one_side = base_->kind == StorageKind::kCpu || base_->kind == StorageKind::kGpu;
  if (has_one_side || !writable || base_->of(side).readonly) return base_->of(side).owner;
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
  const Lock lock(*base_->order);
  GRIDBUF_RETURN_IF_ERROR(base_->bring_all(target, force));
  return on_another_stream ? base_->enter_stream() : absl::OkStatus();
}

absl::Status Storage::device_to_host(bool force) const { return transfer(Side::kHost, force); }
absl::Status Storage::host_to_device(bool force) const { return transfer(Side::kDevice, force); }

absl::Status Storage::synchronize() const {
  GRIDBUF_RETURN_IF_ERROR(device_to_host());
  return host_to_device();
}

absl::Status Storage::mark(Side side) const {
  note_written();
  // The caller may have used any stream. Managed memory does not record more.
  if (side == Side::kDevice && base_->order != nullptr) base_->order->foreign_work = true;
  if (base_->sync == nullptr) return absl::OkStatus();
  const Box box = hull();
  if (is_empty(box)) return absl::OkStatus();
  while (true) {
    GRIDBUF_ASSIGN_OR_RETURN(const auto& marked, base_->sync->mark(side, box));
    if (marked) return absl::OkStatus();
    const Lock lock(*base_->order);
    GRIDBUF_RETURN_IF_ERROR(base_->empty_out(side));
  }
}

absl::Status Storage::set_host_modified() const { return mark(Side::kHost); }
absl::Status Storage::set_device_modified() const { return mark(Side::kDevice); }
void Storage::set_synchronized() const {
  if (base_->sync != nullptr) base_->sync->set_clean();
}

// --- Copies --------------------------------------------------------------------------------------

absl::StatusOr<Digest> Storage::digest() const {
  const Side side = has(Side::kHost) ? Side::kHost : Side::kDevice;
  GRIDBUF_RETURN_IF_ERROR(read(side));
  return array(side).digest();
}

absl::StatusOr<Storage> Storage::copy() const {
  GRIDBUF_ASSIGN_OR_RETURN(
      const auto& layout,
      make_plan(array(has(Side::kHost) ? Side::kHost : Side::kDevice).request()));
  StorageRequest request{.layout = layout, .dtype = dtype(), .kind = base_->kind};
  request.zeroed = has_padding(layout, dtype());
  if (base_->two_layouts) {
    GRIDBUF_ASSIGN_OR_RETURN(const auto& of_device, make_plan(array(Side::kDevice).request()));
    request.device_layout = of_device;
    request.zeroed = request.zeroed || has_padding(of_device);
  }
  GRIDBUF_ASSIGN_OR_RETURN(auto& made, allocate(request));
  GRIDBUF_RETURN_IF_ERROR(made.copy_from(*this));
  GRIDBUF_RETURN_IF_ERROR(made.copy_halo_depth(*this, /*valid=*/true));
  return std::move(made);
}

absl::Status Storage::copy_from(const Storage& source) const {
  if (shape() != source.shape()) {
    return make_error(ErrorClass::kValue,
                      {"the source's shape", to_string(source.shape()),
                       "that of the target, " + to_string(shape()), "pass a view of that shape"});
  }
  GRIDBUF_RETURN_IF_ERROR(check_copied_type(dtype(), source.dtype()));
  const bool converts = !(dtype() == source.dtype());
  const bool both_host = has(Side::kHost) && source.has(Side::kHost);
  const bool both_device = has(Side::kDevice) && source.has(Side::kDevice);
  const bool on_host = converts || (both_host && (!both_device || source.is_current(Side::kHost)));
  const Side wanted = on_host ? Side::kHost : Side::kDevice;
  const Side to = has(wanted) ? wanted : other(wanted);
  const Side from = source.has(wanted) ? wanted : other(wanted);
  GRIDBUF_RETURN_IF_ERROR(source.read(from));
  // A conversion without memory fails before it has written all elements.
  GRIDBUF_RETURN_IF_ERROR(begin_write(to, converts ? Coverage::kPart : Coverage::kAll));
  const absl::Status status = array(to).copy_from(source.array(from));
  end_write(to);
  return status;
}

// --- Guards --------------------------------------------------------------------------------------

absl::StatusOr<OpenWrite> OpenWrite::begin(const Storage& storage, Side side, Coverage coverage) {
  const std::shared_ptr<SyncState>& state = storage.sync_state();
  if (state != nullptr) {
    GRIDBUF_RETURN_IF_ERROR(state->open_write(side, storage.hull()));
  }
  if (absl::Status status = storage.begin_write(side, coverage); !status.ok()) {
    if (state != nullptr) state->close_write(side, storage.hull());
    return status;
  }
  return OpenWrite(storage, side);
}

OpenWrite::~OpenWrite() {
  if (!open_) return;
  storage_.end_write(side_);
  const std::shared_ptr<SyncState>& state = storage_.sync_state();
  if (state != nullptr) state->close_write(side_, storage_.hull());
}

}  // namespace gridbuf
