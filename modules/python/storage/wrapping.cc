// Storages over memory that exists (of Python, of gridbuf.h), and storages with a copy of it.

module;

#include <pybind11/pybind11.h>

#include <cstdint>
#include <cstdlib>
#include <memory>
#include <numeric>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "modules/c/gridbuf.h"
#include "modules/python/arguments/docstrings.h"

module gridbuf.python;

import gridbuf.c;

namespace gridbuf::python::storages {
namespace {

/// The array that says the parameters.
PyObject* main_of(const Arguments& given) {
  return given.data != nullptr ? given.data : given.device_data;
}

[[noreturn]] void raise_unlike(std::string_view parameter, std::string_view wanted,
                               std::string_view found) {
  raise(ErrorClass::kValue, std::string(parameter) + " is wanted as " + std::string(wanted) +
                                ", but the passed object has " + std::string(found) +
                                "; leave it out, or make a copy with gridbuf.storage.storage");
}

/// The memory that was passed, by side. Managed memory is on both.
struct Sides {
  py::object host;
  py::object device;
  TouchHooks touch = {};
  Halo halo = {};  // as data declares it, or device_data without data
};

const BufferDescriptor& memory_of(const py::object& buffer) {
  return array_in(buffer.ptr()).memory();
}

bool is_managed(const py::object& buffer) {
  return memory_kind(memory_of(buffer).device.type) == MemoryKind::kManaged;
}

Sides import_sides(const Arguments& given) {
  Sides sides;
  PyObject* const dims = given.dims;
  Meaning meaning;
  if (given.data != nullptr) {
    const bool device_first = wished_device(given) == true &&
                              to_managed(given.managed) == StorageKind::kGpu &&
                              given.device_data == nullptr;
    const py::object buffer = import_buffer(
        given.data, dims, {.side = device_first ? Side::kDevice : Side::kHost}, &meaning);
    const bool on_host = is_host_readable(memory_of(buffer).device.type);
    if (on_host) sides.host = buffer;
    if (!on_host || is_managed(buffer)) sides.device = buffer;
    (on_host ? sides.touch.host : sides.touch.device) = std::move(meaning.touch);
    sides.halo = meaning.halo;
  }
  if (given.device_data == nullptr) return sides;
  if (sides.device && !sides.host) {
    raise(ErrorClass::kValue, Problem{"data", "memory of a device", "readable by the host",
                                      "pass one of two device arrays"});
  }
  meaning = {};
  sides.device = import_buffer(given.device_data, dims, {.side = Side::kDevice}, &meaning);
  sides.touch.device = std::move(meaning.touch);
  if (given.data == nullptr) sides.halo = meaning.halo;
  if (memory_kind(memory_of(sides.device).device.type) != MemoryKind::kDevice &&
      !is_managed(sides.device)) {
    raise(ErrorClass::kValue,
          Problem{"device_data", "memory of the host", "reached by a device", "pass it as data"});
  }
  return sides;
}

/// Explicit, preset, data, fallback. Memory of one side gets its other buffer only where gridbuf
/// keeps two in step.
StorageKind wanted_kind(const Arguments& given, bool found_device,
                        std::optional<StorageKind> found) {
  return storage_kind(wished_device(given).value_or(found_device), given.managed, found);
}

/// Its own buffers, not exports of them: a view does not count as an export.
Sides own_sides(const StorageObject& object) {
  const Storage& storage = object.storage();
  const auto own = [&object](Side side) {
    return own_buffer(object.storage(), object.dtype, side);
  };
  const bool second = storage.has(Side::kDevice) && storage.kind() != StorageKind::kCudaManaged;
  return {.host = storage.has(Side::kHost) ? own(Side::kHost) : py::object(),
          .device = second ? own(Side::kDevice) : py::object()};
}

/// Leaves the buffers that the kind is made of. ValueError, naming the parameter, if it cannot be
/// made of the passed object.
void keep_sides_of(StorageKind kind, const Arguments& given, Sides& sides) {
  const bool two = given.data != nullptr && given.device_data != nullptr;
  if (kind == StorageKind::kGpu) {
    if (!sides.device) raise_unlike("device", "\"gpu\"", "None");
    if (two) raise_unlike("managed", "None", "two buffers");
    if (sides.host) sides.halo = {};  // of the host's entry
    sides.host = py::object();
    return;
  }
  if (kind == StorageKind::kCpu && (two || !sides.host)) raise_unlike("device", "None", "\"gpu\"");
  if (kind == StorageKind::kCudaManaged) {
    if (!sides.host) {
      sides.host = sides.device;
      sides.halo = {};  // of the device's entry
    }
    if (two || !is_managed(sides.host)) {
      raise_unlike("managed", "\"cuda\"", "memory that CUDA does not manage");
    }
  }
  if (sides.host && !two) sides.device = py::object();
}

/// The info on the memory besides its address.
StorageSource source_of_memory(const Arguments& given, const Sides& sides) {
  PyObject* const main = main_of(given);
  // These say more of themselves than their memory does.
  if (is_storage(main) || is_ndarray(main) || is_buffer(main)) {
    return kept_side(storage_source_of(main, nullptr), given);
  }
  StorageSource source{source_of((sides.host ? sides.host : sides.device).ptr())};
  source.like.dims = with_starts_of(main, source.like.dims);
  source.like.alignment_bytes = 1;
  source.like.aligned_index = {};
  source.like.halo = sides.halo;
  return source;
}

void check_layout(std::string_view parameter, const LayoutMap& wanted, const StridedView& view) {
  if (is_empty(view.shape)) return;  // Its strides have no meaning.
  for (int i = 0; i < view.ndim(); ++i) {
    for (int j = 0; j < view.ndim(); ++j) {
      const bool matters = view.shape[i] > 1 && view.shape[j] > 1 && wanted[i] < wanted[j];
      if (matters && std::abs(view.strides_bytes[i]) < std::abs(view.strides_bytes[j])) {
        raise_unlike(parameter, to_string(wanted),
                     to_string(layout_of(view.shape, view.strides_bytes)));
      }
    }
  }
}

/// The largest alignment up to the wanted one that holds for every element whose index in the
/// contiguous dimension is aligned_index's.
std::int64_t found_alignment(const BufferDescriptor& memory, const Layout& wanted) {
  const std::int64_t wanted_bytes = wanted.alignment_bytes();
  if (memory.is_empty()) return wanted_bytes;
  const StridedView& view = memory.view;
  const auto address =
      reinterpret_cast<std::uintptr_t>(memory.block + byte_offset(view, wanted.aligned_index()));
  std::int64_t found = std::gcd(
      wanted_bytes, static_cast<std::int64_t>(address % static_cast<std::uintptr_t>(wanted_bytes)));
  for (int axis = 0; axis < view.ndim(); ++axis) {
    const bool matters = view.shape[axis] > 1 && wanted.layout_map()[axis] != view.ndim() - 1;
    if (matters) found = std::gcd(found, view.strides_bytes[axis]);
  }
  return found;
}

/// `two`: the buffers have a layout each.
void check_alike(const StridedView& host, const StridedView& device, bool two) {
  if (host.shape != device.shape) {
    raise(ErrorClass::kValue,
          Problem{"the device buffer's shape", to_string(device.shape),
                  "the host buffer's, " + to_string(host.shape), "pass two buffers of one array"});
  }
  if (two || is_empty(host.shape)) return;
  for (int axis = 0; axis < host.ndim(); ++axis) {
    if (host.shape[axis] > 1 && host.strides_bytes[axis] != device.strides_bytes[axis]) {
      raise(ErrorClass::kValue,
            Problem{"device_data's strides in bytes", to_string(device.strides_bytes),
                    "those of data, " + to_string(host.strides_bytes),
                    "pass device_layout for a buffer with another layout, or copy one of them"});
    }
  }
}

/// What was asked for, with the alignment that the memory has.
struct Wanted {
  DTypePtr dtype;
  LayoutRequest host;  // of both sides unless they have a layout each
  LayoutRequest device;
  std::optional<Layout> missing = std::nullopt;  // of the buffer that is not there, if it differs
};

/// ValueError, naming the parameter, for a dtype that the memory does not have.
void check_dtype(PyObject* wanted, const DTypePtr& found) {
  if (!is_given(wanted)) return;
  const RequestedDType dtype = to_dtype(wanted);
  if (!dtype.record->numpy.equal(found->numpy)) {
    raise_unlike("dtype", dtype.record->name, found->name);
  }
}

/// The wanted layout with the alignment that the memory has. ValueError, naming the parameter that
/// begins with `prefix`, for one that it does not have.
LayoutRequest compare_side(const Layout& wanted, const BufferDescriptor& memory, bool asked,
                           const std::string& prefix) {
  check_layout(prefix + "layout", wanted.layout_map(), memory.view);
  const std::int64_t holds = found_alignment(memory, wanted);
  if (asked && holds != wanted.alignment_bytes()) {
    raise_unlike(prefix + "alignment_size", std::to_string(wanted.alignment_bytes()),
                 std::to_string(holds) + " at aligned_index " + to_string(wanted.aligned_index()));
  }
  return {.layout = wanted.layout_map(),
          .alignment_bytes = std::gcd(wanted.alignment_bytes(), holds),
          .aligned_index = wanted.aligned_index(),
          .dims = wanted.dims(),
          .halo = wanted.halo()};
}

Wanted compare(const Arguments& given, StorageKind kind, const Sides& sides) {
  const StorageSource source = source_of_memory(given, sides);
  Arguments meaning = given;
  meaning.dtype = nullptr;  // that of the memory; compared with the wanted one below
  const Request request = resolve_like(source, meaning);
  const std::optional<Layout> second = second_layout(request, kind, given, source.on_device);
  check_dtype(given.dtype, source.dtype);
  if (given.data != nullptr && given.device_data != nullptr && sides.host && sides.device) {
    check_alike(memory_of(sides.host).view, memory_of(sides.device).view, second.has_value());
  }
  const Layout& of_device = second ? *second : request.layout;
  const bool asked = is_given(given.alignment_size) || is_given(given.backend);
  Wanted wanted{.dtype = request.dtype, .host = {}, .device = {}};
  if (sides.host) wanted.host = compare_side(request.layout, memory_of(sides.host), asked, "");
  if (sides.device) {
    const bool asked_here =
        asked || is_given(given.device_alignment_size) || is_given(given.device_defaults);
    wanted.device =
        compare_side(of_device, memory_of(sides.device), asked_here, second ? "device_" : "");
  }
  if (second) {
    if (!sides.device) wanted.missing = *second;
    if (!sides.host) wanted.missing = request.layout;
  } else if (sides.host && sides.device) {
    wanted.host.alignment_bytes =
        std::gcd(wanted.host.alignment_bytes, wanted.device.alignment_bytes);
    wanted.device = wanted.host;
  }
  return wanted;
}

/// None is as good as nothing for what is data.
Arguments without_none(Arguments given) {
  for (PyObject* Arguments::* member :
       {&Arguments::data, &Arguments::device_data, &Arguments::sync_state, &Arguments::shape}) {
    if (given.*member == Py_None) given.*member = nullptr;
  }
  return given;
}

void check_has_data(const Arguments& given, const char* function) {
  if (main_of(given) != nullptr) return;
  raise(ErrorClass::kType, std::string(function) +
                               "() is underdetermined: data and device_data are missing; pass one "
                               "of them, or use gridbuf.storage.empty(shape)");
}

py::object wrap(const Arguments& given) {
  const StorageObject* viewed = nullptr;  // A storage that is of the wanted kind already.
  StorageParts parts;
  Sides sides;
  if (given.device_data == nullptr && is_storage(given.data)) {
    const Storage& storage = storage_of(given.data);
    parts.kind = wanted_kind(given, storage.has(Side::kDevice), managed_of(storage.kind()));
    if (parts.kind == storage.kind()) viewed = object_of(given.data);
    sides = viewed != nullptr ? own_sides(*viewed) : import_sides(given);
  } else {
    sides = import_sides(given);
    std::optional<StorageKind> managed;
    if (sides.host && is_managed(sides.host)) managed = StorageKind::kCudaManaged;
    parts.kind = wanted_kind(given, static_cast<bool>(sides.device), managed);
  }
  if (viewed == nullptr) keep_sides_of(parts.kind, given, sides);
  const Wanted wanted = compare(given, parts.kind, sides);
  const LayoutRequest& meaning = sides.host ? wanted.host : wanted.device;
  if (given.sync_state != nullptr) parts.sync = to_sync_state(given.sync_state);
  if (viewed != nullptr) {
    const Storage& storage = viewed->storage();
    if (parts.sync != nullptr && parts.sync != storage.sync_state()) {
      raise(ErrorClass::kValue,
            Problem{"sync_state", "that of other buffers", "the storage's own", "leave it out"});
    }
    if (storage.dims() == meaning.dims && storage.aligned_index() == meaning.aligned_index) {
      Storage view = storage;
      view.set_starts(meaning.dims);
      if (!meaning.halo.empty()) check(view.set_halo(meaning.halo));
      return make_view(*viewed, [&] { return std::move(view); });
    }
    // The storage under other names keeps the two sides in step with this one's state.
    parts.sync = storage.sync_state();
    storage.note_exported();  // to a storage with a separate depth
  }
  if (sides.host) parts.host = value_of(Array::from(memory_of(sides.host), wanted.host));
  if (sides.device) parts.device = value_of(Array::from(memory_of(sides.device), wanted.device));
  parts.missing_layout = wanted.missing;
  const auto make = [&parts] { return Storage::wrap(parts); };
  absl::StatusOr<Storage> wrapped =
      parts.kind == StorageKind::kCpu ? make() : run_without_gil(make);
  py::object made = make_storage(value_of(std::move(wrapped)), wanted.dtype);
  std::shared_ptr<const TouchHooks>& touch = object_of(made.ptr())->touch;
  if (viewed != nullptr) {
    touch = viewed->touch;
  } else if (sides.touch.host || sides.touch.device) {
    touch = std::make_shared<const TouchHooks>(std::move(sides.touch));
  }
  return made;
}

/// The one of two buffers that is current, as sync_state says.
PyObject* current_of(const Arguments& given) {
  if (given.data == nullptr || given.device_data == nullptr) return main_of(given);
  if (given.sync_state == nullptr) {
    raise(ErrorClass::kValue,
          Problem{"sync_state", "not given", "given with two buffers",
                  "pass SyncState(state) to say which buffer is the newer one"});
  }
  const int state = to_sync_state(given.sync_state)->state();
  if (state == (kSyncHostDirty | kSyncDeviceDirty)) {
    raise(ErrorClass::kSyncConflict,
          "each of the two buffers is newer than the other somewhere; call synchronize() of the "
          "storage that they are from");
  }
  return state == kSyncDeviceDirty ? given.device_data : given.data;
}

py::object copied(const Arguments& given) {
  PyObject* const current = current_of(given);
  StorageSource source = storage_source_of(main_of(given), given.dims);
  if (given.data != nullptr && given.device_data != nullptr) {
    source.memory = MemoryKind::kDevice;
  }
  py::object made = allocate_storage(resolve_storage_like(source, given), Zeroed::kPadding);
  assign(*object_of(made.ptr()), storage_of(made.ptr()), current, /*by_name=*/false);
  if (is_storage(current)) {
    check(storage_of(made.ptr()).copy_halo_depth(storage_of(current), /*valid=*/true));
  }
  return made;
}

}  // namespace

py::object wrap_memory(const Arguments& passed) {
  const Arguments given = without_none(passed);
  check_has_data(given, "as_storage");
  return wrap(given);
}

py::object storage_from(const Arguments& passed) {
  const Arguments given = without_none(passed);
  if (given.shape != nullptr && main_of(given) != nullptr) {
    raise(ErrorClass::kType,
          "storage() got a shape and data; the shape is that of data and cannot be overridden");
  }
  const bool copies = given.copy == nullptr || to_flag(given.copy, "copy");
  if (!copies && given.shape != nullptr) {
    return allocate_storage(resolve_storage(given), Zeroed::kNothing);
  }
  check_has_data(given, "storage");
  return copies ? copied(given) : wrap(given);
}

namespace {

using CHandle = c::Handle<Storage>;

constexpr const char* kCapsule = GRIDBUF_STORAGE_CAPSULE;

}  // namespace

py::object from_c(const Arguments& given) {
  PyObject* const capsule = given.data;
  if (PyCapsule_IsValid(capsule, kCapsule) == 0) {
    raise(ErrorClass::kType,
          Problem{"capsule", describe(capsule),
                  std::string("a PyCapsule of a gridbuf_storage with the name '") + kCapsule + "'",
                  "make it with PyCapsule_New(storage, GRIDBUF_STORAGE_CAPSULE, destructor)"});
  }
  const auto* const handle = static_cast<CHandle*>(PyCapsule_GetPointer(capsule, kCapsule));
  check(c::check(handle));
  Storage storage = handle->value();
  const DTypePtr dtype = record_of(storage.dtype());
  return make_storage(std::move(storage), dtype);
}

py::object to_c(const Arguments& given) {
  PyObject* const storage = given.data;
  if (!is_storage(storage)) {
    raise(ErrorClass::kType, Problem{"storage", describe(storage), "a gridbuf.storage.Storage",
                                     "make one with gridbuf.storage.as_storage(array)"});
  }
  const StorageObject& object = *object_of(storage);
  if (object.touch != nullptr) {
    raise(ErrorClass::kValue,
          "to_c: the producer of this storage's memory is told of every write, and C does not tell "
          "it; pass a copy, gridbuf.storage.storage(storage)");
  }
  if (!record_of(object.storage().dtype())->numpy.equal(object.dtype->numpy)) {
    raise(ErrorClass::kType, Problem{"dtype", object.dtype->name, "a type without fields",
                                     "pass a storage of one field, or of the bytes"});
  }
  auto handle = std::make_unique<CHandle>(c::magic<Storage>(), object.storage());
  py::object made = steal(PyCapsule_New(handle.get(), kCapsule, [](PyObject* dying) {
    if (c::release(static_cast<CHandle*>(PyCapsule_GetPointer(dying, kCapsule))).ok()) return;
    PyErr_SetString(PyExc_ValueError,
                    "a capsule of gridbuf.storage.to_c: its storage was released; the capsule "
                    "releases it");
    PyErr_WriteUnraisable(nullptr);
  }));
  handle.release();
  return made;
}

}  // namespace gridbuf::python::storages
