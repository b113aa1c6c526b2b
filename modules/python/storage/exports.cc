// What leaves a storage: the buffer protocol, ndarrays, dicts, capsules.
//
// All but the buffer protocol leaves through a Buffer over one side's memory, whose owner counts as
// an export. What an interface says of the memory is said in gridbuf.python.buffer and nowhere
// else.

module;

#include <Python.h>

#include <cstddef>
#include <memory>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

module gridbuf.python.storage;

import gridbuf.alloc;
import gridbuf.array;
import gridbuf.base;
import gridbuf.device.registry;
import gridbuf.device;
import gridbuf.interface.buffer;
import gridbuf.interface.dlpack;
import gridbuf.interface.numpy;
import gridbuf.interface;
import gridbuf.layout;
import gridbuf.python.buffer;
import gridbuf.python.support;
import gridbuf.storage;

namespace gridbuf::python::storages {
namespace {

AttributeName array_interface_name("__array_interface__");
AttributeName array_struct_name("__array_struct__");
AttributeName cuda_array_interface_name("__cuda_array_interface__");
AttributeName array_name("__array__");
AttributeName acquire_host_name("_acquire_host");
AttributeName acquire_device_name("_acquire_device");
AttributeName device_to_host_name("device_to_host");
AttributeName host_to_device_name("host_to_device");
AttributeName set_host_modified_name("set_host_modified");
AttributeName set_device_modified_name("set_device_modified");

/// An interface of a side that is not there is an attribute that is not there, so that `hasattr`
/// answers (XA-18).
void check_has(const StorageObject& object, Side side, const char* interface) {
  if (object.storage.has(side)) return;
  PyErr_Format(PyExc_AttributeError, "this storage has no %s: it has no %s buffer", interface,
               side == Side::kHost ? "host" : "device");
  throw PythonError();
}

py::object shown_side(const StorageObject& object, Side side) {
  return shown_buffer(object.storage, object.dtype, side);
}

/// An interface that is a dict: nobody knows how long its reader uses the address.
py::object dict_of(PyObject* self, Side side, AttributeName& name, const char* interface) {
  const StorageObject& object = *object_of(self);
  check_has(object, side, interface);
  // What the memory cannot be described by must not count as an export.
  const py::object unwatched = own_buffer(object.storage, object.dtype, side);
  const py::object dict = steal(PyObject_GetAttr(unwatched.ptr(), name.get()));
  up_to_date(object.storage, side);
  if (!object.storage.readonly()) object.storage.note_unknown_export(side);
  return share(dict.ptr());
}

/// What the device side's exports name as their device (DP-02).
Side exporting_side(const Storage& storage) {
  return storage.has(Side::kDevice) ? Side::kDevice : Side::kHost;
}

}  // namespace

// ---- The buffer protocol (PB-01 ... PB-25). ----

namespace {

/// The host's memory as consumers' pointers lead into it: it stays while the object does.
const BufferDescriptor& shown_host(StorageObject& object) {
  if (object.shown_host == nullptr) {
    object.shown_host = std::make_unique<ShownMemory>();
    object.shown_host->memory = object.storage.memory(Side::kHost);
    // The object keeps the memory.
    object.shown_host->memory.owner = nullptr;
  }
  return object.shown_host->memory;
}

/// What `internal` of a view that counts as an export points to.
char counted_mark = 0;

}  // namespace

int get_buffer(PyObject* self, Py_buffer* view, int flags) {
  if (view == nullptr) {
    PyErr_SetString(PyExc_BufferError, "a buffer request needs a Py_buffer to fill; pass one");
    return -1;
  }
  view->obj = nullptr;  // PB-01: also on failure.
  return guarded(-1, [&] {
    StorageObject& object = *object_of(self);
    if (!object.storage.has(Side::kHost)) {
      raise(ErrorClass::kNoSuchBuffer,
            Problem{"the storage's memory", "that of a device alone", "readable by the host",
                    "use to_cupy(), or copy it: gridbuf.storage.storage(s, device=None)"});
    }
    const BufferFields fields = value_of(answer_buffer_request(shown_host(object), flags));
    up_to_date(object.storage, Side::kHost);
    char* mark = nullptr;
    if (!fields.readonly) {
      object.storage.add_export(Side::kHost);
      mark = &counted_mark;
    }
    view->buf = fields.buf;
    view->len = fields.len_bytes;
    view->itemsize = fields.itemsize_bytes;
    view->readonly = fields.readonly ? 1 : 0;
    view->ndim = fields.ndim;
    view->format = const_cast<char*>(fields.format);
    view->shape = const_cast<Py_ssize_t*>(fields.shape);
    view->strides = const_cast<Py_ssize_t*>(fields.strides_bytes);
    view->suboffsets = nullptr;
    view->internal = mark;
    view->obj = Py_NewRef(self);
    return 0;
  });
}

void release_buffer(PyObject* self, Py_buffer* view) {
  if (view->internal == nullptr) return;
  object_of(self)->storage.drop_export(Side::kHost);
}

PyObject* data_getter(PyObject* self, void*) {
  return guarded([&] {
    if (!object_of(self)->storage.has(Side::kHost)) return share(Py_None);
    return steal(PyMemoryView_FromObject(self));
  });
}

PyObject* device_data_getter(PyObject* self, void*) {
  return guarded([&] {
    const StorageObject& object = *object_of(self);
    if (!object.storage.has(Side::kDevice)) return share(Py_None);
    up_to_date(object.storage, Side::kDevice);
    const py::object pointer =
        make_device_pointer(own_buffer(object.storage, object.dtype, Side::kDevice));
    // A number is used by whoever has seen it.
    if (!object.storage.readonly()) object.storage.note_unknown_export(Side::kDevice);
    return share(pointer.ptr());
  });
}

// ---- ndarrays. ----

namespace {

void check_has_buffer(const StorageObject& object, Side side, const char* advice) {
  if (object.storage.has(side)) return;
  raise(ErrorClass::kNoSuchBuffer,
        Problem{"the storage's memory", to_string(object.storage.kind()),
                side == Side::kHost ? "readable by the host" : "reached by a device", advice});
}

py::object host_view(PyObject* self) {
  const StorageObject& object = *object_of(self);
  check_has_buffer(object, Side::kHost,
                   "use to_cupy(), or copy it: gridbuf.storage.storage(s, device=None)");
  return ndarray_of(shown_side(object, Side::kHost).ptr());
}

py::object device_view(PyObject* self) {
  const StorageObject& object = *object_of(self);
  check_has_buffer(object, Side::kDevice,
                   "use to_numpy(), or copy it: gridbuf.storage.storage(s, device=\"gpu\")");
  // Whether there is a CuPy is asked before anything is shown.
  make_cupy_view(own_buffer(object.storage, object.dtype, Side::kDevice), /*sync=*/false);
  return make_cupy_view(shown_side(object, Side::kDevice), /*sync=*/true);
}

}  // namespace

PyObject* to_numpy_method(PyObject* self, PyObject*) {
  return guarded([&] { return host_view(self); });
}

PyObject* to_cupy_method(PyObject* self, PyObject*) {
  return guarded([&] { return device_view(self); });
}

PyObject* to_ndarray_method(PyObject* self, PyObject*) {
  return guarded([&] {
    return object_of(self)->storage.has(Side::kDevice) ? device_view(self) : host_view(self);
  });
}

PyObject* array_method(PyObject* self, PyObject* const* arguments, Py_ssize_t count,
                       PyObject* names) {
  return guarded([&] {
    const StorageObject& object = *object_of(self);
    if (!object.storage.has(Side::kHost)) {
      raise(ErrorClass::kType,
            "this storage has no host buffer, and is not copied to the host by the way; use "
            "to_cupy(), or copy it with gridbuf.storage.storage(s, device=None)");
    }
    const py::object buffer = shown_side(object, Side::kHost);
    const py::object method = steal(PyObject_GetAttr(buffer.ptr(), array_name.get()));
    return steal(
        PyObject_Vectorcall(method.ptr(), arguments, static_cast<std::size_t>(count), names));
  });
}

// ---- DLPack. ----

namespace {

/// The side that a consumer asks for: the host's if it names a device that is the host's.
Side asked_side(const Storage& storage, PyObject* const* arguments, Py_ssize_t count,
                PyObject* names) {
  const Side usual = exporting_side(storage);
  if (names == nullptr || usual == Side::kHost || !storage.has(Side::kHost)) return usual;
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(names); ++i) {
    if (PyUnicode_CompareWithASCIIString(PyTuple_GET_ITEM(names, i), "dl_device") != 0) continue;
    PyObject* const wanted = arguments[count + i];
    if (PyTuple_Check(wanted) == 0 || PyTuple_GET_SIZE(wanted) != 2) return usual;
    py::object type = share(PyTuple_GET_ITEM(wanted, 0));
    if (PyLong_Check(type.ptr()) == 0) {  // An enum member whose value is the number (DP-02).
      static AttributeName value_name("value");
      type = optional_attribute(type.ptr(), value_name);
      if (!type || PyLong_Check(type.ptr()) == 0) return usual;
    }
    int overflow = 0;
    const long long number = PyLong_AsLongLongAndOverflow(type.ptr(), &overflow);
    const Device host = storage.memory(Side::kHost).device;
    const bool is_host = number == static_cast<long long>(DeviceType::kHost) ||
                         number == static_cast<long long>(host.type);
    return overflow == 0 && is_host ? Side::kHost : usual;
  }
  return usual;
}

}  // namespace

PyObject* dlpack_method(PyObject* self, PyObject* const* arguments, Py_ssize_t count,
                        PyObject* names) {
  return guarded([&] {
    const StorageObject& object = *object_of(self);
    const Side side = asked_side(object.storage, arguments, count, names);
    // What DLPack has no word for must not count as an export.
    if (object.storage.sync_state() != nullptr) {
      check(dlpack::check_exportable(object.storage.memory(side)));
    }
    const py::object buffer = shown_side(object, side);
    return export_dlpack(buffer.ptr(), arguments, count, names);
  });
}

PyObject* dlpack_device_method(PyObject* self, PyObject*) {
  const Storage& storage = object_of(self)->storage;
  const Device& device = storage.device(exporting_side(storage));
  return Py_BuildValue("(ii)", static_cast<int>(device.type), static_cast<int>(device.id));
}

// ---- Dicts and structs. ----

PyObject* array_interface_getter(PyObject* self, void*) {
  return guarded(
      [&] { return dict_of(self, Side::kHost, array_interface_name, "__array_interface__"); });
}

PyObject* cuda_array_interface_getter(PyObject* self, void*) {
  return guarded([&] {
    return dict_of(self, Side::kDevice, cuda_array_interface_name, "__cuda_array_interface__");
  });
}

PyObject* array_struct_getter(PyObject* self, void*) {
  return guarded([&] {
    const StorageObject& object = *object_of(self);
    check_has(object, Side::kHost, "__array_struct__");
    // Absent for some dtypes, which is found out before anything is shown. The capsule holds its
    // Buffer, and with it the share: its life is known.
    const py::object unwatched = own_buffer(object.storage, object.dtype, Side::kHost);
    steal(PyObject_GetAttr(unwatched.ptr(), array_struct_name.get()));
    const py::object buffer = shown_side(object, Side::kHost);
    return steal(PyObject_GetAttr(buffer.ptr(), array_struct_name.get()));
  });
}

// ---- __gt_data_interface__ (GT-01 ... GT-09). ----

namespace {

/// The names of the methods that are an entry's functions.
struct Hooks {
  AttributeName* acquire = nullptr;
  AttributeName* touch = nullptr;
};

/// `acquire` makes its side current, `touch` says that it was written. In memory that both sides
/// reach, acquiring waits for the other side; memory of one side alone needs nothing.
Hooks hooks_of(const Storage& storage, Side side) {
  const bool host = side == Side::kHost;
  const StorageKind kind = storage.kind();
  Hooks hooks;
  if (kind == StorageKind::kSoftwareManaged) {
    hooks.acquire = host ? &device_to_host_name : &host_to_device_name;
    hooks.touch = host ? &set_host_modified_name : &set_device_modified_name;
  } else if (kind == StorageKind::kCudaManaged) {
    hooks.acquire = host ? &acquire_host_name : &acquire_device_name;
  }
  return hooks;
}

py::object entry_of(PyObject* self, Side side) {
  const StorageObject& object = *object_of(self);
  const StorageKind kind = object.storage.kind();
  // No data can be stale here, but the entry names a stream, which must be the right one.
  if (kind == StorageKind::kGpu) up_to_date(object.storage, side);
  const py::object buffer = own_buffer(object.storage, object.dtype, side);
  const Hooks hooks = hooks_of(object.storage, side);
  const auto bound = [self](AttributeName* name) {
    return name == nullptr ? py::object() : steal(PyObject_GetAttr(self, name->get()));
  };
  const py::object acquire = bound(hooks.acquire);
  const py::object touch = bound(hooks.touch);
  return make_data_entry(buffer.ptr(), side == Side::kHost ? DeviceType::kHost : DeviceType::kCuda,
                         object.storage.halo(), acquire.ptr(), touch.ptr());
}

}  // namespace

PyObject* data_interface_getter(PyObject* self, void*) {
  return guarded([&] {
    const StorageObject& object = *object_of(self);
    py::object sides = steal(PyDict_New());
    if (object.storage.has(Side::kHost)) {
      check(PyDict_SetItem(sides.ptr(), Py_None, entry_of(self, Side::kHost).ptr()));
    }
    if (object.storage.has(Side::kDevice) &&
        (!object.storage.is_emulated() || emulated_device_is_on())) {
      const py::object key = make_text(kGpuKey);
      check(PyDict_SetItem(sides.ptr(), key.ptr(), entry_of(self, Side::kDevice).ptr()));
    }
    return sides;
  });
}

PyObject* acquire_host_method(PyObject* self, PyObject*) {
  return guarded([&] {
    up_to_date(object_of(self)->storage, Side::kHost);
    return share(Py_None);
  });
}

PyObject* acquire_device_method(PyObject* self, PyObject*) {
  return guarded([&] {
    up_to_date(object_of(self)->storage, Side::kDevice);
    return share(Py_None);
  });
}

}  // namespace gridbuf::python::storages
