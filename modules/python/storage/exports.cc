// Exports of storages: the buffer protocol, ndarrays and capsules, and their order with pending
// work.
//
// The buffer protocol exports the memory directly. The others export a Buffer over the memory of
// one side, whose owner counts as an export. gridbuf.python.buffer describes the memory.
//
// Also functions of Python as kernels of the emulated device.

module;

#include <pybind11/pybind11.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

module gridbuf.python;

namespace gridbuf::python::storages {
namespace {

using dlpack::DLManagedTensorVersioned;

ShownMemory& shown_memory(StorageObject& object, Side side) {
  const PythonLock lock(object.head.mutex);
  std::unique_ptr<ShownMemory>& shown = object.shown[static_cast<std::size_t>(side)];
  if (shown == nullptr) {
    shown = std::make_unique<ShownMemory>();
    shown->memory = object.storage().memory(side);
    shown->memory.owner = nullptr;  // The object keeps the memory.
  }
  return *shown;
}

void check_has_buffer(const StorageObject& object, Side side, std::string_view found) {
  if (object.storage().has(side)) return;
  const bool is_host = side == Side::kHost;
  raise(ErrorClass::kNoSuchBuffer,
        Problem{
            "the storage's memory", found, is_host ? "readable by the host" : "reached by a device",
            is_host ? "use to_cupy(), or copy it: gridbuf.storage.storage(s, device=None)"
                    : "use to_numpy(), or copy it: gridbuf.storage.storage(s, device=\"gpu\")"});
}

/// What `internal` of a view that counts as an export points to.
char counted_mark = 0;

/// Whether a consumer wants the host, or a device that the storage's host memory is of.
bool asks_for_host(const Storage& storage, const dlpack::ExportRequest& request) {
  if (!request.dl_device) return false;
  const std::int64_t type = request.dl_device->type;
  return type == static_cast<std::int64_t>(DeviceType::kHost) ||
         type == static_cast<std::int64_t>(storage.device(Side::kHost).type);
}

// DLPack's C exchange table: that of Buffers, but for what takes or makes an object.

/// A storage, or a TypeError: the table serves its own types alone (DX-11).
StorageObject& to_storage(void* py_object) {
  auto* const object = static_cast<PyObject*>(py_object);
  if (object == nullptr || !is_storage(object)) {
    raise(ErrorClass::kType, Problem{"the object", object == nullptr ? "null" : describe(object),
                                     "a gridbuf.storage.Storage, whose table this is",
                                     "look the table up on the object's own type"});
  }
  return *object_of(object);
}

int export_owned(void* py_object, DLManagedTensorVersioned** out) {
  return guarded(-1, [&] {
    const StorageObject& object = to_storage(py_object);
    const py::object buffer = shown_buffer(object, exporting_side(object.storage()));
    *out = value_of(dlpack::export_versioned(array_in(buffer.ptr()).memory())).release();
    return 0;
  });
}

/// Shape and strides are in the object (DX-07). The end of their use is not known.
int export_borrowed(void* py_object, dlpack::DLTensor* out) {
  return guarded(-1, [&] {
    StorageObject& object = to_storage(py_object);
    const Side side = exporting_side(object.storage());
    ShownMemory& shown = shown_memory(object, side);
    check(described(object.head, shown.memory, shown.strides_elements, *out));
    up_to_date(object.storage(), side);
    if (!object.storage().readonly()) object.storage().note_unknown_export(side);
    return 0;
  });
}

int import_owned(DLManagedTensorVersioned* tensor, void** out_py_object) {
  return guarded(-1, [&] {
    ImportedView view = value_of(dlpack::take(tensor));  // Owns it from here on (DX-08).
    const DTypePtr dtype = record_of(view.memory.dtype);
    const MemoryKind kind = memory_kind(view.memory.device.type);
    StorageParts parts;
    const Dims dims = default_dims(view.memory.view.ndim());
    const Array array = foreign_array(std::move(view.memory), dims);
    if (kind == MemoryKind::kDevice) {
      parts.kind = StorageKind::kGpu;
      parts.device = array;
    } else {
      parts.kind = kind == MemoryKind::kManaged ? StorageKind::kCudaManaged : StorageKind::kCpu;
      parts.host = array;
    }
    *out_py_object = make_storage(value_of(Storage::wrap(parts)), dtype).release().ptr();
    return 0;
  });
}

}  // namespace

void up_to_date(const Storage& storage, Side side) {
  if (storage.is_ready(side)) return;
  check(run_unlocked(storage, [&] { return storage.read(side); }));
}

Side reading_side(const Storage& storage) {
  return storage.has(Side::kHost) ? Side::kHost : Side::kDevice;
}

Side exporting_side(const Storage& storage) {
  return storage.has(Side::kDevice) ? Side::kDevice : Side::kHost;
}

py::object own_buffer(const Storage& storage, const DTypePtr& dtype, Side side, Owner share) {
  const Device& device = storage.device(side);
  // gridbuf orders its work on the current stream before it exports the memory.
  const StreamHandle stream = device.type == DeviceType::kHost ? 0 : current_stream();
  py::object buffer =
      adopt_buffer(dtype, nullptr, [&] { return storage.array(side, std::move(share)); });
  python::object_of(buffer.ptr())->array.set_info(ArrayInfo::adopted("storage", device, stream));
  return buffer;
}

py::object shown_buffer(const StorageObject& object, Side side) {
  const Storage& storage = object.storage();
  // There is no other side that has to know.
  if (storage.kind() == StorageKind::kCpu && side == Side::kHost) {
    if (!storage.readonly()) storage.add_export(side);
    return own_buffer(storage, object.dtype, side);
  }
  Owner share = value_of(
      run_unlocked(storage, [&] { return storage.export_side(side, !storage.readonly()); }));
  return own_buffer(storage, object.dtype, side, std::move(share));
}

py::object own_ndarray(const Storage& view, const DTypePtr& dtype, bool readonly, PyObject* base) {
  const BufferDescriptor memory = view.memory(Side::kHost);
  return make_ndarray(*dtype, memory.view, memory.first_element(), readonly || memory.readonly,
                      base);
}

py::object host_elements(const StorageObject& object, const Storage& view) {
  const Side side = reading_side(view);
  up_to_date(view, side);
  const py::object buffer = own_buffer(view, object.dtype, side);
  if (side == Side::kHost) return own_ndarray(view, object.dtype, /*readonly=*/true, buffer.ptr());
  return ndarray_of(copy_of(buffer.ptr(), MemoryKind::kHost).ptr());
}

// ---- The buffer protocol (PB-01 ... PB-25), ndarrays and DLPack. ----

void answer_request(StorageObject& object, Py_buffer& view, int flags) {
  check_has_buffer(object, Side::kHost, "that of a device alone");
  const Py_buffer answer = answer_of(shown_memory(object, Side::kHost).memory, flags);
  up_to_date(object.storage(), Side::kHost);
  const bool counts = answer.readonly == 0;
  if (counts) object.storage().add_export(Side::kHost);
  view = answer;
  view.internal = counts ? &counted_mark : nullptr;
}

void release_buffer(PyObject* self, Py_buffer* view) {
  if (view->internal != nullptr) object_of(self)->storage().drop_export(Side::kHost);
}

py::object to_numpy(const StorageObject& object) {
  check_has_buffer(object, Side::kHost, to_string(object.storage().kind()));
  return ndarray_of(shown_buffer(object, Side::kHost).ptr());
}

py::object to_cupy(const StorageObject& object) {
  check_has_buffer(object, Side::kDevice, to_string(object.storage().kind()));
  // Whether there is a CuPy is asked before anything is shown.
  make_cupy_view(own_buffer(object.storage(), object.dtype, Side::kDevice), /*sync=*/false);
  return make_cupy_view(shown_buffer(object, Side::kDevice), /*sync=*/true);
}

PyObject* dlpack_method(PyObject* self, PyObject* const* arguments, Py_ssize_t count,
                        PyObject* names) {
  return guarded([&] {
    const StorageObject& object = *object_of(self);
    const Storage& storage = object.storage();
    const dlpack::ExportRequest request = to_export_request(arguments, count, names);
    const Side side = storage.has(Side::kHost) && asks_for_host(storage, request)
                          ? Side::kHost
                          : exporting_side(storage);
    if (storage.kind() == StorageKind::kCpu && storage.device(side).type == DeviceType::kHost) {
      // Nothing to watch and nothing to wait for: no Buffer is needed.
      const BufferDescriptor memory = storage.memory(side);
      const dlpack::ExportPlan plan = value_of(dlpack::negotiate(memory, request));
      if (!plan.copy) {
        if (!storage.readonly()) storage.add_export(side);
        return export_capsule(memory, plan);
      }
    }
    // What DLPack has no word for must not count as an export.
    if (storage.sync_state() != nullptr) check(dlpack::check_exportable(storage.memory(side)));
    return export_dlpack(shown_buffer(object, side).ptr(), request);
  });
}

PyObject* dlpack_device_method(PyObject* self, PyObject*) {
  const Storage& storage = object_of(self)->storage();
  const Device& device = storage.device(exporting_side(storage));
  return Py_BuildValue("(ii)", static_cast<int>(device.type), static_cast<int>(device.id));
}

py::object make_storage_exchange_capsule() {
  // One for the process, for as long as it lives (DX-02).
  static dlpack::ExchangeApi table = buffer_exchange_table();
  table.managed_tensor_from_py_object_no_sync = export_owned;
  table.managed_tensor_to_py_object_no_sync = import_owned;
  table.dltensor_from_py_object_no_sync = export_borrowed;
  return steal(PyCapsule_New(&table, dlpack::kExchangeCapsuleName, nullptr));
}

namespace {

/// One array as a kernel sees it: the same shape and strides where the device's bytes are. An empty
/// array begins at other memory, because NumPy may read its first byte.
py::object array_in_kernel(PyObject* array, KernelMemory& memory) {
  if (!is_ndarray(array)) return share(array);
  const NdarrayFields fields = fields_of(array);
  const DTypePtr dtype = record_of(fields.dtype);
  StridedView view{.shape = fields.shape,
                   .strides_bytes = fields.strides_bytes,
                   .itemsize_bytes = dtype->type.itemsize_bytes()};
  const auto hull = byte_hull(view);
  if (!hull || !emulated_driver().owns(fields.first_element)) return share(array);
  if (is_empty(view.shape)) {
    alignas(64) static constinit std::byte nothing[64] = {};
    return make_ndarray(*dtype, view, nothing, fields.readonly, array);
  }
  std::byte* const lowest =
      value_of(memory.at(fields.first_element + hull->lowest_bytes, hull->length_bytes()));
  return make_ndarray(*dtype, view, lowest - hull->lowest_bytes, fields.readonly, array);
}

}  // namespace

py::object by_position(const StorageObject& object) {
  Dims dims = object.storage().dims();
  for (Dim& dim : dims) dim = dim.has_start() ? dim.plain() : dim;
  return make_view(object, [&] {
    Storage view = object.storage();
    view.set_starts(dims);
    return view;
  });
}

py::object own_memory(const StorageObject& object) {
  const Storage& storage = object.storage();
  if (storage.kind() == StorageKind::kSoftwareManaged) return by_position(object);
  const Side side = reading_side(storage);
  up_to_date(storage, side);
  py::object buffer = own_buffer(storage, object.dtype, side);
  if (side == Side::kDevice) return buffer;
  return own_ndarray(storage, object.dtype, /*readonly=*/false, buffer.ptr());
}

/// function(*arrays) as a kernel of the emulated device, whose arrays (of _read_array and
/// _write_array) it gets where a kernel can touch them. Waits; returns or raises what it did.
py::object run_kernel(const py::args& arguments) {
  const std::span<PyObject* const> given(&PyTuple_GET_ITEM(arguments.ptr(), 0), arguments.size());
  if (given.empty() || PyCallable_Check(given[0]) == 0) {
    raise(ErrorClass::kType, "_run_kernel() takes a callable and its arrays");
  }
  if (!emulated_device_is_on()) {
    raise(ErrorClass::kDeviceUnavailable,
          "_run_kernel() is for the emulated device, which is switched off");
  }
  py::object value;
  std::optional<py::error_already_set> error;
  // Runs on whichever thread waits for the stream, which must not have Python's lock.
  const auto kernel = [&](KernelMemory& memory) {
    const py::gil_scoped_acquire_simple locked;
    value = steal_or_none(guarded([&] {
      std::vector<py::object> held;
      std::vector<PyObject*> arrays;
      for (PyObject* const array : given.subspan(1)) {
        held.push_back(array_in_kernel(array, memory));
        arrays.push_back(held.back().ptr());
      }
      return steal(PyObject_Vectorcall(given[0], arrays.data(), arrays.size(), nullptr));
    }));
    if (!value) error.emplace();  // Takes the exception that is set.
    return absl::OkStatus();
  };
  const absl::Status status =
      run_without_gil([&] { return emulated_driver().run(current_stream(), kernel); });
  if (error) throw py::error_already_set(*error);
  check(status);
  return value;
}

}  // namespace gridbuf::python::storages
