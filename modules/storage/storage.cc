module;

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "modules/base/status_macros.h"

module gridbuf.storage;

import gridbuf.alloc.host;
import gridbuf.base;
import gridbuf.device;
import gridbuf.device.registry;

// Making storages, and their attributes.

namespace gridbuf {

namespace {

MemoryKind memory_kind_of(StorageKind kind, Side side) {
  if (kind == StorageKind::kCudaManaged) return MemoryKind::kManaged;
  if (side == Side::kDevice) return MemoryKind::kDevice;
  return kind == StorageKind::kSoftwareManaged ? MemoryKind::kPinned : MemoryKind::kHost;
}

// The layout of a second buffer, for the same field.
absl::Status check_second(const Layout& second, const StridedView& first, StorageKind kind) {
  if (kind != StorageKind::kSoftwareManaged) {
    return make_error(ErrorClass::kValue,
                      {"the second layout of a " + std::string(to_string(kind)) + " storage",
                       "given", "left out, because the storage has one buffer",
                       "leave it out, or make a software-managed storage"});
  }
  if (second.shape() == first.shape && second.itemsize_bytes() == first.itemsize_bytes) {
    return absl::OkStatus();
  }
  return make_error(ErrorClass::kValue,
                    {"the second layout", to_string(second.view()),
                     "of the first layout's shape and item size, " + to_string(first),
                     "make both layouts for one array"});
}

// Whether one layout does not describe both buffers of a field.
bool differ(const Layout& a, const Layout& b) {
  StridedView ours = a.view();
  StridedView theirs = b.view();
  replace_meaningless_strides(ours);
  replace_meaningless_strides(theirs);
  return a.layout_map() != b.layout_map() || ours.strides_bytes != theirs.strides_bytes ||
         a.alignment_bytes() != b.alignment_bytes() || a.aligned_index() != b.aligned_index();
}

// The memory of a side must be where the kind of storage has it.
absl::Status check_device(const Device& device, StorageKind kind, Side side) {
  const MemoryKind found = memory_kind(device.type);
  if (kind == StorageKind::kCudaManaged ? found == MemoryKind::kManaged : is_on(side, found)) {
    return absl::OkStatus();
  }
  return make_error(
      ErrorClass::kValue,
      {"the memory of the " + std::string(to_string(side)) + "'s buffer", to_string(device),
       kind == StorageKind::kCudaManaged ? "managed (CUDA)"
       : side == Side::kHost             ? "readable by the host"
                                         : "a CUDA device's",
       "pass it as the buffer of the opposite side, or copy it"});
}

absl::Status check_request(const StorageRequest& request) {
  if (request.dtype.itemsize_bytes() != request.layout.itemsize_bytes()) {
    return make_error(ErrorClass::kValue,
                      {"dtype", request.dtype.name(),
                       "of the layout's item size, " + bytes_text(request.layout.itemsize_bytes()),
                       "make the layout for this element type"});
  }
  if (request.device_resource != nullptr && request.kind != StorageKind::kSoftwareManaged) {
    return make_error(
        ErrorClass::kValue,
        {"the device's resource of a " + std::string(to_string(request.kind)) + " storage", "given",
         "left out, because the storage has one buffer", "pass it as `resource`"});
  }
  if (!request.device_layout) return absl::OkStatus();
  return check_second(*request.device_layout, request.layout.view(), request.kind);
}

}  // namespace

absl::StatusOr<Storage> Storage::allocate(const StorageRequest& request) {
  GRIDBUF_RETURN_IF_ERROR(check_request(request));
  GRIDBUF_ASSIGN_OR_RETURN(
      const auto& seen, with_meaning(request.layout, request.layout.dims(), request.layout.halo()));
  GRIDBUF_ASSIGN_OR_RETURN(auto& base, StorageBase::make(request.kind));
  for (const Side side : {Side::kHost, Side::kDevice}) {
    const bool is_second = side == Side::kDevice && request.kind == StorageKind::kSoftwareManaged;
    const bool is_first =
        request.kind == StorageKind::kGpu ? side == Side::kDevice : side == Side::kHost;
    if (!is_first && !is_second) continue;
    const Layout& layout = is_second && request.device_layout ? *request.device_layout : seen;
    MemoryResource* const resource = is_second ? request.device_resource : request.resource;
    absl::StatusOr<ArrayMemory> made =
        Array::allocate_memory(layout, request.dtype,
                               {.memory = memory_kind_of(request.kind, side),
                                .zeroed = request.zeroed,
                                .populate = request.populate,
                                .resource = resource});
    if (!made.ok()) return with_context(made.status(), "a storage");
    if (resource != nullptr) {
      GRIDBUF_RETURN_IF_ERROR(check_device(made->info.block.device, request.kind, side));
    }
    if (is_second) base->second = std::make_unique<Array>();
    (is_second ? *base->second : base->first).reset(*std::move(made), layout, request.dtype);
  }
  if (request.kind != StorageKind::kCpu) {
    GRIDBUF_ASSIGN_OR_RETURN(const auto& driver, device_driver());
    base->driver = driver;
  }
  if (request.kind == StorageKind::kSoftwareManaged) {
    base->owns_gaps = true;
    base->two_layouts = request.device_layout && differ(*request.device_layout, seen);
    if (!base->two_layouts) base->common_bytes = request.layout.total_bytes();
  }
  GRIDBUF_RETURN_IF_ERROR(base->start());
  if (base->order != nullptr) base->order->stream = current_stream();
  return absl::StatusOr<Storage>(std::in_place, std::move(base), seen);
}

// --- Existing memory -----------------------------------------------------------------------------

namespace {

absl::Status check_sides(const StorageParts& parts) {
  const bool one_buffer = parts.kind == StorageKind::kCudaManaged;
  const bool may_lack_one = parts.kind == StorageKind::kSoftwareManaged;
  const bool wants_host = parts.kind != StorageKind::kGpu;
  const bool wants_device = parts.kind == StorageKind::kGpu || may_lack_one;
  const bool fits = may_lack_one ? parts.host || parts.device
                                 : parts.host.has_value() == wants_host &&
                                       parts.device.has_value() == wants_device;
  if (!fits) {
    const std::string found = std::string(parts.host ? "a host" : "no host") + " and " +
                              (parts.device ? "a device" : "no device") + " buffer";
    return make_error(ErrorClass::kValue,
                      {"a " + std::string(to_string(parts.kind)) + " storage", found,
                       one_buffer     ? "made of one managed buffer, passed as the host's"
                       : may_lack_one ? "made of one or both"
                       : wants_host   ? "made of a host buffer alone"
                                      : "made of a device buffer alone",
                       "pass another device or managed, or other buffers"});
  }
  return absl::OkStatus();
}

absl::Status check_pair(const BufferDescriptor& host, const BufferDescriptor& device) {
  if (host.view.shape != device.view.shape) {
    return make_error(
        ErrorClass::kValue,
        {"the device buffer's shape", to_string(device.view.shape),
         "the host buffer's, " + to_string(host.view.shape), "pass two buffers of one array"});
  }
  if (host.dtype == device.dtype) return absl::OkStatus();
  return make_error(ErrorClass::kValue,
                    {"the device buffer's dtype", device.dtype.name(),
                     "the host buffer's, " + host.dtype.name(), "pass two buffers of one array"});
}

absl::Status check_state(const StorageParts& parts) {
  const bool two = parts.host && parts.device;
  if (parts.kind == StorageKind::kSoftwareManaged && two && parts.sync == nullptr) {
    return make_error(ErrorClass::kValue,
                      {"sync_state", "not given", "given with two buffers",
                       "pass SyncState(state) to say which buffer is the newer one"});
  }
  if ((parts.kind == StorageKind::kSoftwareManaged && two) || parts.sync == nullptr) {
    return absl::OkStatus();
  }
  return make_error(ErrorClass::kValue, {"sync_state", "given",
                                         "left out where there are not two "
                                         "buffers to choose from",
                                         "leave it out"});
}

absl::Status check(const StorageParts& parts) {
  for (const Side side : {Side::kHost, Side::kDevice}) {
    const std::optional<Array>& array = side == Side::kHost ? parts.host : parts.device;
    if (!array) continue;
    GRIDBUF_RETURN_IF_ERROR(Array::from(array->memory(), array->request()).status());
    GRIDBUF_RETURN_IF_ERROR(check_device(array->memory().device, parts.kind, side));
  }
  if (!parts.host || !parts.device) return absl::OkStatus();
  return check_pair(parts.host->memory(), parts.device->memory());
}

// Completes a software-managed storage: adds the missing buffer, and a state in which the given
// side is dirty.
absl::Status complete_pair(StorageParts& parts) {
  if (parts.kind != StorageKind::kSoftwareManaged || (parts.host && parts.device)) {
    return absl::OkStatus();
  }
  const Side missing = parts.host ? Side::kDevice : Side::kHost;
  const Array& given = parts.host ? *parts.host : *parts.device;
  const ArrayOptions options{.memory = memory_kind_of(parts.kind, missing)};
  const DType& dtype = given.memory().dtype;
  GRIDBUF_ASSIGN_OR_RETURN(auto& made, parts.missing_layout
                                           ? Array::allocate(*parts.missing_layout, dtype, options)
                                           : Array::empty(given.request(), dtype, options));
  (missing == Side::kHost ? parts.host : parts.device) = std::move(made);
  GRIDBUF_ASSIGN_OR_RETURN(
      auto& state, SyncState::make(missing == Side::kHost ? kSyncDeviceDirty : kSyncHostDirty));
  parts.sync = std::move(state);
  return absl::OkStatus();
}

absl::StatusOr<DeviceDriver*> driver_for(const BufferDescriptor& buffer) {
  DeviceDriver* known = driver_of(buffer.first_element());
  if (known != nullptr) return known;
  return device_driver();
}

}  // namespace

absl::StatusOr<Storage> Storage::wrap(const StorageParts& given) {
  GRIDBUF_RETURN_IF_ERROR(check_sides(given));
  GRIDBUF_RETURN_IF_ERROR(check_state(given));
  GRIDBUF_RETURN_IF_ERROR(check(given));
  if (given.missing_layout) {
    const Array& first = given.host ? *given.host : *given.device;
    GRIDBUF_RETURN_IF_ERROR(check_second(*given.missing_layout, first.memory().view, given.kind));
  }
  StorageParts parts = given;
  GRIDBUF_RETURN_IF_ERROR(complete_pair(parts));
  GRIDBUF_ASSIGN_OR_RETURN(auto& base, StorageBase::make(parts.kind));
  const Array& first = parts.host ? *parts.host : *parts.device;
  const Layout& named = (given.host ? given.host : given.device)->layout();
  GRIDBUF_ASSIGN_OR_RETURN(const auto& seen,
                           with_meaning(first.layout(), named.dims(), named.halo()));
  base->sync = parts.sync;
  base->first = first;
  base->was_exported = true;  // others have the memory, too
  if (parts.kind == StorageKind::kSoftwareManaged) {
    base->second = std::make_unique<Array>(*parts.device);
    base->two_layouts = differ(first.layout(), parts.device->layout());
  }
  if (parts.kind != StorageKind::kCpu) {
    GRIDBUF_ASSIGN_OR_RETURN(const auto& driver, driver_for(base->of(Side::kDevice)));
    base->driver = driver;
  }
  const bool has_order = parts.sync != nullptr && parts.sync->is_attached();
  GRIDBUF_RETURN_IF_ERROR(base->start());
  if (base->order != nullptr && !has_order) base->order->stream = current_stream();
  return Storage(std::move(base), seen);
}

// --- Attributes --------------------------------------------------------------------------------

StorageKind Storage::kind() const { return base_->kind; }
const DType& Storage::dtype() const { return base_->first.memory().dtype; }
bool Storage::has(Side side) const { return base_->has(side); }
bool Storage::readonly() const {
  return base_->first.memory().readonly ||
         (base_->second != nullptr && base_->second->memory().readonly);
}
const Device& Storage::device(Side side) const { return base_->of(side).device; }

bool Storage::is_emulated() const {
  return base_->driver != nullptr && base_->driver->is_emulated();
}

const std::shared_ptr<SyncState>& Storage::sync_state() const { return base_->sync; }

absl::Status Storage::set_halo(const Halo& halo) {
  GRIDBUF_RETURN_IF_ERROR(validate_halo(halo, shape()));
  seen_ = Layout(seen_, dims(), halo);
  return absl::OkStatus();
}

Storage Storage::view(const IndexMap& map) const { return Storage(*this, map); }

Storage Storage::domain_view() const { return view(domain_map(shape(), halo())); }

bool Storage::has_two_layouts() const { return base_->two_layouts; }

namespace {

// A side of a whole storage keeps the strides of its plan, as the other side does.
template <class V>
V seen_through(const IndexMap& map, const V& whole) {
  return map.is_identity() ? whole : apply(map, whole);
}

}  // namespace

BufferDescriptor Storage::memory(Side side) const {
  const BufferDescriptor& buffer = base_->of(side);
  const bool is_main = side == Side::kHost || base_->kind != StorageKind::kSoftwareManaged;
  return {.block = buffer.block,
          .view = is_main ? seen_.view() : seen_through(map_, base_->of(side).view),
          .dtype = buffer.dtype,
          .readonly = buffer.readonly,
          .device = buffer.device,
          .owner = buffer.owner};
}

Array Storage::array(Side side, Owner share) const {
  const bool is_main = side == Side::kHost || base_->kind != StorageKind::kSoftwareManaged;
  const ArrayInfo& info = base_->array_of(side).info();
  BufferDescriptor seen = memory(side);
  if (share != nullptr) seen.owner = std::move(share);
  if (is_main) return Array(std::move(seen), seen_, info);
  if (base_->two_layouts) {
    const Layout layout(seen_through(map_, base_->second->layout()), dims(), halo());
    return Array(std::move(seen), layout, info);
  }
  const Layout layout(seen.view, seen_.layout_map(), alignment_bytes(), aligned_index(), dims(),
                      halo());
  return Array(std::move(seen), layout, info);
}

}  // namespace gridbuf
