// DLPack's C exchange table of storages: the one of Buffers, but for what takes or makes an object.

module;

#include <Python.h>

#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

module gridbuf.python.storage;

import gridbuf.alloc;
import gridbuf.base;
import gridbuf.device;
import gridbuf.interface;
import gridbuf.interface.dlpack;
import gridbuf.layout;
import gridbuf.python.buffer;
import gridbuf.python.support;
import gridbuf.storage;

namespace gridbuf::python::storages {
namespace {

using dlpack::DLManagedTensorVersioned;
using dlpack::DLTensor;

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
    const py::object buffer =
        shown_buffer(object.storage, object.dtype, exporting_side(object.storage));
    *out = value_of(dlpack::export_versioned(state_of(buffer.ptr()).memory)).release();
    return 0;
  });
}

/// Shape and strides lie in the object (DX-07). Nothing tells how long the reader uses them.
int export_borrowed(void* py_object, DLTensor* out) {
  return guarded(-1, [&] {
    StorageObject& object = to_storage(py_object);
    const Side side = exporting_side(object.storage);
    ShownMemory& shown = shown_memory(object, side);
    check(dlpack::describe_tensor(shown.memory, shown.strides_elements, *out));
    up_to_date(object.storage, side);
    if (!object.storage.readonly()) object.storage.note_unknown_export(side);
    return 0;
  });
}

StorageKind kind_of_memory(DeviceType type) {
  switch (type) {
    case DeviceType::kCuda:
    case DeviceType::kRocm:
      return StorageKind::kGpu;
    case DeviceType::kCudaManaged:
      return StorageKind::kCudaManaged;
    default:
      return StorageKind::kCpu;
  }
}

int import_owned(DLManagedTensorVersioned* tensor, void** out_py_object) {
  return guarded(-1, [&] {
    ImportedView view = value_of(dlpack::take(tensor));  // Owns it from here on (DX-08).
    const DTypePtr dtype = record_of(view.memory.dtype);
    StorageParts parts;
    parts.kind = kind_of_memory(view.memory.device.type);
    (parts.kind == StorageKind::kGpu ? parts.device : parts.host) = std::move(view.memory);
    *out_py_object = make_storage(value_of(Storage::wrap(parts)), dtype).release().ptr();
    return 0;
  });
}

}  // namespace

py::object make_storage_exchange_capsule() {
  // One for the process, for as long as it lives (DX-02).
  static dlpack::ExchangeApi table = buffer_exchange_table();
  table.managed_tensor_from_py_object_no_sync = export_owned;
  table.managed_tensor_to_py_object_no_sync = import_owned;
  table.dltensor_from_py_object_no_sync = export_borrowed;
  return steal(PyCapsule_New(&table, dlpack::kExchangeCapsuleName, nullptr));
}

}  // namespace gridbuf::python::storages
