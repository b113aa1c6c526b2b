// The functions of storages.
#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "modules/base/status_macros.h"
#include "modules/c/gridbuf.h"

import gridbuf.c;

namespace gridbuf::c {
namespace {

absl::Status check_second(StorageKind kind, bool is_given) {
  if (!is_given || kind == StorageKind::kSoftwareManaged) return absl::OkStatus();
  return bad({"options->device_layout or device_alignment_bytes", "set",
              "left out of a storage of one buffer", "pass GRIDBUF_STORAGE_BOTH as the kind"});
}

absl::StatusOr<StorageRequest> read_request(const Options& field) {
  if (field.memory || (field.flags & GRIDBUF_READONLY) != 0) {
    return bad({"options->memory or GRIDBUF_READONLY", "set", "left out of a new storage",
                "pass options->kind"});
  }
  const StorageKind kind =
      field.kind.value_or(field.wants_device ? StorageKind::kSoftwareManaged : StorageKind::kCpu);
  GRIDBUF_ASSIGN_OR_RETURN(const auto& layout, make_plan(field.request));
  GRIDBUF_ASSIGN_OR_RETURN(const auto& second, device_layout_of(field, field.request));
  GRIDBUF_RETURN_IF_ERROR(check_second(kind, second.has_value()));
  return StorageRequest{.layout = layout,
                        .dtype = field.dtype,
                        .kind = kind,
                        .zeroed = (field.flags & GRIDBUF_ZEROED) != 0,
                        .populate = (field.flags & GRIDBUF_POPULATE) != 0,
                        .device_layout = second};
}

absl::StatusOr<Storage> wrap(StorageParts parts, std::int32_t kind,
                             const gridbuf_options* options) {
  parts.kind = !parts.device ? StorageKind::kCpu
               : !parts.host ? StorageKind::kGpu
                             : StorageKind::kSoftwareManaged;
  if (kind != 0) {
    GRIDBUF_ASSIGN_OR_RETURN(parts.kind, read_kind(kind));
  }
  if (parts.host && parts.device && parts.kind == StorageKind::kSoftwareManaged) {
    GRIDBUF_ASSIGN_OR_RETURN(parts.sync, SyncState::make(kSyncClean));
  }
  if (options != nullptr) {
    GRIDBUF_ASSIGN_OR_RETURN(const auto& field, read_options(options));
    LayoutRequest first = (parts.host ? parts.host : parts.device)->request();
    Options second = field;
    if (second.device_layout.size() != first.shape.size()) second.device_layout = {};
    GRIDBUF_ASSIGN_OR_RETURN(parts.missing_layout, device_layout_of(second, first));
    GRIDBUF_RETURN_IF_ERROR(check_second(parts.kind, parts.missing_layout.has_value()));
  }
  return Storage::wrap(parts);
}

absl::Status check_has(const Storage& storage, Side side) {
  if (storage.has(side)) return absl::OkStatus();
  return make_error(ErrorClass::kNoSuchBuffer,
                    {"side", side == Side::kHost ? "the host" : "the device",
                     "a side of the storage", "use a side that its kind has"});
}

// Runs `work` with the storage of a handle and a side that it has.
template <class Work>
gridbuf_status with_side(const gridbuf_storage* storage, std::int32_t side, const Work& work) {
  return with(storage, [&](Storage& found) -> absl::Status {
    GRIDBUF_ASSIGN_OR_RETURN(const auto& read, read_side(side));
    GRIDBUF_RETURN_IF_ERROR(check_has(found, read));
    return work(found, read);
  });
}

absl::StatusOr<Storage> view(const Storage& source, const absl::StatusOr<IndexMap>& map) {
  if (!map.ok()) return map.status();
  return source.view(*map);
}

absl::Status begin(const Storage& storage, Side side, std::int32_t mode) {
  if (mode == GRIDBUF_READ) return storage.read(side);
  if (mode == GRIDBUF_WRITE || mode == GRIDBUF_READ_WRITE) {
    return storage.begin_write(side, mode == GRIDBUF_WRITE ? Coverage::kAll : Coverage::kPart);
  }
  return bad({"mode", std::to_string(mode), "0 to 2",
              "pass GRIDBUF_READ, GRIDBUF_WRITE or GRIDBUF_READ_WRITE"});
}

}  // namespace
}  // namespace gridbuf::c

using namespace gridbuf::c;
using gridbuf::Side;
using gridbuf::Storage;

extern "C" {

gridbuf_status gridbuf_storage_create(const gridbuf_options* options, gridbuf_storage** out) {
  return made(out, [&]() -> absl::Status {
    GRIDBUF_ASSIGN_OR_RETURN(const auto& field, read_options(options));
    GRIDBUF_ASSIGN_OR_RETURN(const auto& request, read_request(field));
    if ((field.flags & GRIDBUF_DELAYED) == 0) return give(Storage::allocate(request), out);
    *out = outside(new Handle<Storage>(magic<Storage>(), request));
    return absl::OkStatus();
  });
}

gridbuf_status gridbuf_storage_wrap(const gridbuf_array* host, const gridbuf_array* device,
                                    int32_t kind, const gridbuf_options* options,
                                    gridbuf_storage** out) {
  return made(out, [&]() -> absl::Status {
    if (host == nullptr && device == nullptr) return require(nullptr, "host and device");
    gridbuf::StorageParts parts;
    for (const gridbuf_array* array : {host, device}) {
      if (array == nullptr) continue;
      GRIDBUF_RETURN_IF_ERROR(check(inside(array)));
      (array == host ? parts.host : parts.device) = inside(array)->value;
    }
    if (host == device) parts.device.reset();
    return give(wrap(std::move(parts), kind, options), out);
  });
}

gridbuf_status gridbuf_storage_release(gridbuf_storage* storage) {
  return guarded([&] { return release(inside(storage)); });
}

gridbuf_status gridbuf_storage_info(const gridbuf_storage* storage, int32_t side,
                                    gridbuf_info* info) {
  return with_side(storage, side, [&](const Storage& shown, Side read) {
    return write_info(shown.array(read), number_of(shown.kind()), nullptr, info);
  });
}

gridbuf_status gridbuf_storage_dim(const gridbuf_storage* storage, int32_t axis, char* name,
                                   int32_t* kind) {
  return with(storage,
              [&](const Storage& shown) { return write_dim(shown.dims(), axis, name, kind); });
}

gridbuf_status gridbuf_storage_view(const gridbuf_storage* storage, const gridbuf_item* items,
                                    int32_t count, gridbuf_storage** out) {
  return made_with(storage, out, [&](const Storage& source) {
    return view(source, read_items(source.shape(), items, count));
  });
}

gridbuf_status gridbuf_storage_transpose(const gridbuf_storage* storage, const int32_t* axes,
                                         gridbuf_storage** out) {
  return made_with(storage, out, [&](const Storage& source) {
    return view(source, read_axes(source.shape(), axes));
  });
}

gridbuf_status gridbuf_storage_domain(const gridbuf_storage* storage, gridbuf_storage** out) {
  return made_with(storage, out, [](const Storage& source) -> absl::StatusOr<Storage> {
    return source.domain_view();
  });
}

gridbuf_status gridbuf_storage_set_halo(gridbuf_storage* storage, const int64_t* halo) {
  return with(storage, [&](Storage& changed) -> absl::Status {
    GRIDBUF_ASSIGN_OR_RETURN(const auto& widths, read_halo(halo, changed.ndim()));
    return changed.set_halo(widths);
  });
}

gridbuf_status gridbuf_storage_valid_halo(const gridbuf_storage* storage, int64_t* depths) {
  return with(storage, [&](const Storage& asked) -> absl::Status {
    GRIDBUF_RETURN_IF_ERROR(require(depths, "depths"));
    for (const gridbuf::HaloWidth depth : asked.valid_halo()) {
      *depths++ = depth.lower;
      *depths++ = depth.upper;
    }
    return absl::OkStatus();
  });
}

gridbuf_status gridbuf_storage_mark_halo(const gridbuf_storage* storage, const int64_t* depths) {
  return with(storage, [&](const Storage& marked) -> absl::Status {
    if (depths == nullptr) return marked.mark_halo_valid(marked.halo());
    GRIDBUF_ASSIGN_OR_RETURN(const auto& points, read_halo(depths, marked.ndim()));
    return marked.mark_halo_valid(points);
  });
}

gridbuf_status gridbuf_storage_access(const gridbuf_storage* storage, int32_t side, int32_t mode,
                                      void** data) {
  const Handle<Storage>* handle = inside(storage);
  const bool is_usable = check(handle).ok() && (side == GRIDBUF_HOST || side == GRIDBUF_DEVICE);
  const auto place = static_cast<std::size_t>(is_usable ? side : 0);
  if (is_usable && handle->sides().has[place] && data != nullptr && mode == GRIDBUF_READ &&
      handle->value().is_ready(static_cast<Side>(side))) [[likely]] {
    *data = handle->sides().first[place];
    return GRIDBUF_OK;
  }
  return with_side(storage, side, [&](const Storage& used, Side read) -> absl::Status {
    GRIDBUF_RETURN_IF_ERROR(require(data, "data"));
    GRIDBUF_RETURN_IF_ERROR(begin(used, read, mode));
    if (mode != GRIDBUF_READ && read == Side::kHost) used.end_write(read);
    *data = handle->sides().first[place];
    return absl::OkStatus();
  });
}

gridbuf_status gridbuf_storage_end_write(const gridbuf_storage* storage, int32_t side) {
  return with_side(storage, side, [](const Storage& used, Side read) {
    used.end_write(read);
    return absl::OkStatus();
  });
}

gridbuf_status gridbuf_storage_array(const gridbuf_storage* storage, int32_t side, int32_t writable,
                                     gridbuf_array** out) {
  return made_with(storage, out, [&](const Storage& used) -> absl::StatusOr<gridbuf::Array> {
    GRIDBUF_ASSIGN_OR_RETURN(const auto& read, read_side(side));
    GRIDBUF_RETURN_IF_ERROR(check_has(used, read));
    if (writable != 0 && used.memory(read).readonly) {
      return bad({"the storage's memory", "read-only", "writable", "pass writable = 0"});
    }
    GRIDBUF_ASSIGN_OR_RETURN(auto& share, used.export_side(read, writable != 0));
    const gridbuf::Array array = used.array(read, std::move(share));
    return writable != 0 ? array : array.as_readonly();
  });
}

gridbuf_status gridbuf_storage_is_current(const gridbuf_storage* storage, int32_t side,
                                          int32_t* out) {
  return with_side(storage, side, [&](const Storage& used, Side read) -> absl::Status {
    GRIDBUF_RETURN_IF_ERROR(require(out, "out"));
    *out = used.is_current(read) ? 1 : 0;
    return absl::OkStatus();
  });
}

gridbuf_status gridbuf_storage_set_modified(const gridbuf_storage* storage, int32_t side) {
  return with_side(storage, side, [](const Storage& used, Side read) {
    return read == Side::kHost ? used.set_host_modified() : used.set_device_modified();
  });
}

gridbuf_status gridbuf_storage_set_synchronized(const gridbuf_storage* storage) {
  return with(storage, [](const Storage& used) {
    used.set_synchronized();
    return absl::OkStatus();
  });
}

gridbuf_status gridbuf_storage_update(const gridbuf_storage* storage, int32_t side, int32_t force) {
  return with_side(storage, side, [&](const Storage& used, Side read) {
    return read == Side::kHost ? used.device_to_host(force != 0) : used.host_to_device(force != 0);
  });
}

gridbuf_status gridbuf_storage_synchronize(const gridbuf_storage* storage) {
  return with(storage, [](const Storage& used) { return used.synchronize(); });
}

gridbuf_status gridbuf_storage_copy(const gridbuf_storage* storage, gridbuf_storage** out) {
  return made_with(storage, out, [](const Storage& source) { return source.copy(); });
}

gridbuf_status gridbuf_storage_digest(const gridbuf_storage* storage, uint64_t digest[2]) {
  return with(storage, [&](const Storage& used) -> absl::Status {
    GRIDBUF_RETURN_IF_ERROR(require(digest, "digest"));
    const absl::StatusOr<gridbuf::Digest> found = used.digest();
    if (!found.ok()) return found.status();
    std::ranges::copy(found->sums, digest);
    return absl::OkStatus();
  });
}

gridbuf_status gridbuf_storage_copy_from(const gridbuf_storage* storage,
                                         const gridbuf_storage* source) {
  return with(storage, [&](const Storage& target) -> absl::Status {
    GRIDBUF_RETURN_IF_ERROR(check(inside(source)));
    return target.copy_from(value_of(source));
  });
}

}  // extern "C"
