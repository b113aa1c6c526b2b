// What leaves a Buffer: the buffer protocol, the array interface, DLPack, ndarrays.

module;

#include <Python.h>

#include <cstdint>
#include <optional>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

module gridbuf.python.buffer;

import gridbuf.alloc;
import gridbuf.error;
import gridbuf.interface;
import gridbuf.interface.array_interface;
import gridbuf.interface.buffer;
import gridbuf.interface.dlpack;
import gridbuf.interface.dtype;
import gridbuf.layout;
import gridbuf.python.arguments;
import gridbuf.python.numpy;
import gridbuf.python.object;

namespace gridbuf::python {

// ---- The buffer protocol (PB-01 ... PB-25). ----

int get_buffer(PyObject* self, Py_buffer* view, int flags) {
  if (view == nullptr) {
    PyErr_SetString(PyExc_BufferError, "a buffer request needs a Py_buffer to fill; pass one");
    return -1;
  }
  view->obj = nullptr;  // PB-01: also on failure.
  return guarded(-1, [&] {
    // The answer leads into the object, which the request then holds (PB-25).
    const BufferFields fields =
        value_of(answer_buffer_request(object_of(self)->state.memory, flags));
    view->buf = fields.buf;
    view->len = fields.len_bytes;
    view->itemsize = fields.itemsize_bytes;
    view->readonly = fields.readonly ? 1 : 0;
    view->ndim = fields.ndim;
    view->format = const_cast<char*>(fields.format);
    view->shape = const_cast<Py_ssize_t*>(fields.shape);
    view->strides = const_cast<Py_ssize_t*>(fields.strides_bytes);
    view->suboffsets = nullptr;
    view->internal = nullptr;
    view->obj = Py_NewRef(self);
    return 0;
  });
}

// ---- The array interface (AI-01 ... AI-33). ----

namespace {

void set_item(const Ref& dictionary, const char* key, const Ref& value) {
  check(PyDict_SetItemString(dictionary.get(), key, value.get()));
}

Ref make_array_interface(const BufferObject& buffer) {
  if (buffer.state.memory.dtype.kind() == Kind::kNarrow) {
    // Its typestr would be that of raw bytes, and consumers would believe it.
    PyErr_Format(PyExc_AttributeError,
                 "__array_interface__ has no word for dtype %s; use to_numpy() or __dlpack__",
                 buffer.dtype->name.c_str());
    throw PythonError();
  }
  const ArrayInterfaceFields fields = value_of(array_interface(buffer.state.memory));
  Ref interface = Ref::steal(PyDict_New());
  set_item(interface, "shape", from_integers(fields.shape.span()));
  set_item(interface, "typestr", Ref::share(buffer.dtype->typestr.get()));
  if (buffer.dtype->descr) set_item(interface, "descr", Ref::share(buffer.dtype->descr.get()));
  set_item(interface, "data",
           Ref::steal(Py_BuildValue("(NN)", PyLong_FromUnsignedLongLong(fields.data_address),
                                    PyBool_FromLong(fields.readonly ? 1 : 0))));
  set_item(
      interface, "strides",
      fields.strides_bytes ? from_integers(fields.strides_bytes->span()) : Ref::share(Py_None));
  set_item(interface, "version", Ref::steal(PyLong_FromLong(fields.version)));
  return interface;
}

}  // namespace

PyObject* array_interface_getter(PyObject* self, void*) {
  return guarded([&] { return make_array_interface(*object_of(self)); });
}

// ---- DLPack (DL-01 ... DL-30, DP-01 ... DP-27). ----

namespace {

/// Runs the deleter of a capsule that nobody consumed (DP-06, DP-07).
template <class Tensor>
void destroy_capsule(PyObject* capsule, const char* name) {
  if (PyCapsule_IsValid(capsule, name) == 0) return;
  dlpack::CallDeleter()(static_cast<Tensor*>(PyCapsule_GetPointer(capsule, name)));
}
void destroy_legacy(PyObject* capsule) {
  destroy_capsule<dlpack::DLManagedTensor>(capsule, dlpack::kLegacyName);
}
void destroy_versioned(PyObject* capsule) {
  destroy_capsule<dlpack::DLManagedTensorVersioned>(capsule, dlpack::kVersionedName);
}

/// The capsule of an export, which it owns from then on.
template <class Export>
Ref make_capsule(Export tensor, const char* name, PyCapsule_Destructor destructor) {
  Ref capsule = Ref::steal(PyCapsule_New(tensor.get(), name, destructor));
  tensor.release();
  return capsule;
}

/// A keyword that is a pair of integers, or None.
template <class Pair>
std::optional<Pair> to_pair(PyObject* object, const char* name) {
  if (object == nullptr || object == Py_None) return std::nullopt;
  if (PyTuple_Check(object) == 0 || PyTuple_GET_SIZE(object) != 2) {
    raise(ErrorClass::kType, Problem{name, describe(object), "None or a tuple of two integers",
                                     "pass a 2-tuple such as (1, 0)"});
  }
  return Pair{to_integer(PyTuple_GET_ITEM(object, 0), name),
              to_integer(PyTuple_GET_ITEM(object, 1), name)};
}

/// The type of a device: an integer, or an enum member whose value is one (DP-02, DP-23).
std::optional<dlpack::ExportRequest::WantedDevice> to_device(PyObject* object) {
  if (object == nullptr || object == Py_None || PyTuple_Check(object) == 0 ||
      PyTuple_GET_SIZE(object) != 2 || PyIndex_Check(PyTuple_GET_ITEM(object, 0)) != 0) {
    return to_pair<dlpack::ExportRequest::WantedDevice>(object, "dl_device");
  }
  const Ref value =
      Ref::steal_or_none(PyObject_GetAttrString(PyTuple_GET_ITEM(object, 0), "value"));
  if (!value) PyErr_Clear();
  return dlpack::ExportRequest::WantedDevice{
      to_integer(value ? value.get() : PyTuple_GET_ITEM(object, 0), "dl_device"),
      to_integer(PyTuple_GET_ITEM(object, 1), "dl_device")};
}

dlpack::ExportRequest read_request(PyObject* stream, PyObject* max_version, PyObject* dl_device,
                                   PyObject* copy) {
  dlpack::ExportRequest request;
  if (stream != nullptr && stream != Py_None) request.stream = to_integer(stream, "stream");
  request.max_version = to_pair<dlpack::ExportRequest::Version>(max_version, "max_version");
  request.dl_device = to_device(dl_device);
  if (copy != nullptr && copy != Py_None) request.copy = to_flag(copy, "copy");
  return request;
}

Ref export_capsule(const BufferDescriptor& memory, const dlpack::ExportPlan& plan) {
  if (plan.versioned) {
    return make_capsule(value_of(dlpack::export_versioned(memory, plan)), dlpack::kVersionedName,
                        destroy_versioned);
  }
  return make_capsule(value_of(dlpack::export_legacy(memory, plan)), dlpack::kLegacyName,
                      destroy_legacy);
}

}  // namespace

PyObject* dlpack_method(PyObject* self, PyObject* const* arguments, Py_ssize_t count,
                        PyObject* keywords) {
  return guarded([&] {
    static constexpr const char* kNames[] = {"stream", "max_version", "dl_device", "copy"};
    static constexpr Signature kSignature{"__dlpack__", kNames, 0};
    PyObject* values[4] = {};
    sort_arguments(kSignature, arguments, count, keywords, values, unexpected_keyword);
    const dlpack::ExportRequest request = read_request(values[0], values[1], values[2], values[3]);
    const BufferDescriptor& memory = object_of(self)->state.memory;
    const dlpack::ExportPlan plan = value_of(dlpack::negotiate(memory, request));
    if (!plan.copy) return export_capsule(memory, plan);
    const Ref copied = copy_of(self);  // The export takes a share of its memory.
    return export_capsule(object_of(copied.get())->state.memory, plan);
  });
}

PyObject* dlpack_device_method(PyObject* self, PyObject*) {
  const Device& device = object_of(self)->state.memory.device;
  return Py_BuildValue("(ii)", static_cast<int>(device.type), static_cast<int>(device.id));
}

// ---- NumPy. ----

Ref ndarray_of(PyObject* buffer) {
  const BufferObject& object = *object_of(buffer);
  const BufferDescriptor& memory = object.state.memory;
  return make_ndarray(*object.dtype, memory.view, memory.first_element(), memory.readonly, buffer);
}

PyObject* to_numpy_method(PyObject* self, PyObject*) {
  return guarded([&] { return ndarray_of(self); });
}

PyObject* array_method(PyObject* self, PyObject* const* arguments, Py_ssize_t count,
                       PyObject* keywords) {
  return guarded([&] {
    static constexpr const char* kNames[] = {"dtype", "copy"};
    static constexpr Signature kSignature{"__array__", kNames, 2};
    PyObject* values[2] = {};
    sort_arguments(kSignature, arguments, count, keywords, values, unexpected_keyword);
    PyObject* const dtype = values[0];
    PyObject* const copy = values[1];
    std::optional<bool> must_copy;
    if (copy != nullptr && copy != Py_None) must_copy = to_flag(copy, "copy");
    const Ref view = ndarray_of(self);
    PyObject* const own_dtype = object_of(self)->dtype->numpy.get();
    PyObject* const wanted = dtype == nullptr || dtype == Py_None ? own_dtype : dtype;
    // astype answers with the array itself where nothing is to be converted.
    Ref result =
        Ref::steal(PyObject_CallMethod(view.get(), "astype", "OssOO", wanted, "K", "unsafe",
                                       Py_True, must_copy == true ? Py_True : Py_False));
    if (must_copy == false && result.get() != view.get()) {
      raise(ErrorClass::kValue,
            Problem{"copy", "False with dtype " + describe(wanted),
                    "True or None where elements must be converted", "leave copy out"});
    }
    return result;
  });
}

}  // namespace gridbuf::python
