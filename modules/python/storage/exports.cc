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
import gridbuf.base;
import gridbuf.device;
import gridbuf.device.registry;
import gridbuf.interface;
import gridbuf.interface.buffer;
import gridbuf.interface.dlpack;
import gridbuf.interface.numpy;
import gridbuf.layout;
import gridbuf.python.buffer;
import gridbuf.python.support;
import gridbuf.storage;

namespace gridbuf::python::storages {
namespace {

/// An interface of a side that is not there is an attribute that is not there, so that `hasattr`
/// answers (XA-18).
void check_has(const StorageObject& object, Side side, const char* interface) {
  if (object.storage.has(side)) return;
  PyErr_Format(PyExc_AttributeError, "this storage has no %s: it has no %s buffer", interface,
               side == Side::kHost ? "host" : "device");
  throw PythonError();
}

py::object attribute(PyObject* object, const char* name) {
  return steal(PyObject_GetAttrString(object, name));
}

void check_has_buffer(const StorageObject& object, Side side, const char* advice) {
  if (object.storage.has(side)) return;
  raise(ErrorClass::kNoSuchBuffer,
        Problem{"the storage's memory", to_string(object.storage.kind()),
                side == Side::kHost ? "readable by the host" : "reached by a device", advice});
}

py::object shown_side(const StorageObject& object, Side side) {
  return shown_buffer(object.storage, object.dtype, side);
}

}  // namespace

// ---- The buffer protocol (PB-01 ... PB-25). ----

ShownMemory& shown_memory(StorageObject& object, Side side) {
  std::unique_ptr<ShownMemory>& shown = object.shown[static_cast<std::size_t>(side)];
  if (shown == nullptr) {
    shown = std::make_unique<ShownMemory>();
    shown->memory = object.storage.memory(side);
    shown->memory.owner = nullptr;  // The object keeps the memory.
  }
  return *shown;
}

namespace {

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
    const BufferFields fields = value_of(answer_buffer_request(
        shown_memory(object, Side::kHost).memory, flags));
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

// ---- ndarrays. ----

py::object to_numpy(const StorageObject& object) {
  check_has_buffer(object, Side::kHost,
                   "use to_cupy(), or copy it: gridbuf.storage.storage(s, device=None)");
  return ndarray_of(shown_side(object, Side::kHost).ptr());
}

py::object to_cupy(const StorageObject& object) {
  check_has_buffer(object, Side::kDevice,
                   "use to_numpy(), or copy it: gridbuf.storage.storage(s, device=\"gpu\")");
  // Whether there is a CuPy is asked before anything is shown.
  make_cupy_view(own_buffer(object.storage, object.dtype, Side::kDevice), /*sync=*/false);
  return make_cupy_view(shown_side(object, Side::kDevice), /*sync=*/true);
}

py::object to_array(const StorageObject& object, PyObject* arguments, PyObject* keywords) {
  if (!object.storage.has(Side::kHost)) {
    raise(ErrorClass::kType,
          "this storage has no host buffer, and is not copied to the host by the way; use "
          "to_cupy(), or copy it with gridbuf.storage.storage(s, device=None)");
  }
  const py::object method = attribute(shown_side(object, Side::kHost).ptr(), "__array__");
  return steal(PyObject_Call(method.ptr(), arguments, keywords));
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

py::object interface_dict(const StorageObject& object, Side side, const char* name) {
  check_has(object, side, name);
  // What the memory cannot be described by must not count as an export.
  py::object dict = attribute(own_buffer(object.storage, object.dtype, side).ptr(), name);
  up_to_date(object.storage, side);
  // Nothing tells how long the reader uses the address.
  if (!object.storage.readonly()) object.storage.note_unknown_export(side);
  return dict;
}

py::object array_struct(const StorageObject& object) {
  static constexpr char kName[] = "__array_struct__";
  check_has(object, Side::kHost, kName);
  // Absent for some dtypes, which is found out before anything is shown. The capsule holds its
  // Buffer, and with it the share: its life is known.
  attribute(own_buffer(object.storage, object.dtype, Side::kHost).ptr(), kName);
  return attribute(shown_side(object, Side::kHost).ptr(), kName);
}

// ---- __gt_data_interface__ (GT-01 ... GT-09). ----

namespace {

/// `acquire` makes the side current, `touch` says that it was written. In memory that both sides
/// reach, acquiring waits for the other side; memory of one side alone needs nothing.
py::object entry_of(StorageObject& object, Side side) {
  const bool is_host = side == Side::kHost;
  const StorageKind kind = object.storage.kind();
  // No data can be stale here, but the entry names a stream, which must be the right one.
  if (kind == StorageKind::kGpu) up_to_date(object.storage, side);
  py::object acquire;
  py::object touch;
  if (kind == StorageKind::kSoftwareManaged) {
    acquire = attribute(object.self(), is_host ? "device_to_host" : "host_to_device");
    touch = attribute(object.self(), is_host ? "set_host_modified" : "set_device_modified");
  } else if (kind == StorageKind::kCudaManaged) {
    acquire = attribute(object.self(), is_host ? "_acquire_host" : "_acquire_device");
  }
  return make_data_entry(own_buffer(object.storage, object.dtype, side).ptr(),
                         is_host ? DeviceType::kHost : DeviceType::kCuda, object.storage.halo(),
                         acquire.ptr(), touch.ptr());
}

}  // namespace

py::object data_interface(StorageObject& object) {
  const Storage& storage = object.storage;
  py::object sides = steal(PyDict_New());
  if (storage.has(Side::kHost)) {
    check(PyDict_SetItem(sides.ptr(), Py_None, entry_of(object, Side::kHost).ptr()));
  }
  if (storage.has(Side::kDevice) && (!storage.is_emulated() || emulated_device_is_on())) {
    check(PyDict_SetItem(sides.ptr(), make_text(kGpuKey).ptr(),
                         entry_of(object, Side::kDevice).ptr()));
  }
  return sides;
}

}  // namespace gridbuf::python::storages
