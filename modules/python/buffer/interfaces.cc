// The buffer protocol, ndarrays, and the interfaces that are dicts or structs: NumPy's, CUDA's,
// GT4Py's.

module;

#include <Python.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <optional>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

module gridbuf.python;

namespace gridbuf::python {

namespace {

/// A key as a template argument: each is made once, which halves the time of a dict.
template <std::size_t length>
struct Key {
  char text[length];
  constexpr Key(const char (&given)[length]) { std::copy_n(given, length, text); }
};

template <Key key>
void set(const py::object& dict, const py::object& value) {
  static AttributeName name(key.text);
  check(PyDict_SetItem(dict.ptr(), name.get(), value.ptr()));
}

/// The keys that all array interfaces share (AI-01 … AI-33, CAI-01 … CAI-30).
template <class Fields>
py::object make_dict(const Fields& fields, const DTypeRecord& dtype) {
  const auto numbers = [](const std::optional<Extents>& extents) {
    return extents ? from_integers(extents->span()) : share(Py_None);
  };
  py::object dict = steal(PyDict_New());
  set<"shape">(dict, numbers(fields.shape));
  set<"typestr">(dict, dtype.typestr);
  if (dtype.descr) set<"descr">(dict, dtype.descr);
  set<"data">(dict, steal(Py_BuildValue("(KO)", fields.data_address,
                                        fields.readonly ? Py_True : Py_False)));
  set<"strides">(dict, numbers(fields.strides_bytes));
  set<"version">(dict, steal(PyLong_FromLong(fields.version)));
  return dict;
}

// ---- What an object does not have. ----

/// An interface that the object does not have is an attribute that it does not have, so that
/// `hasattr` answers (XA-18, AI-29, CAI-24).
[[noreturn]] void raise_absent(const char* interface, const absl::Status& reason) {
  const std::string text(reason.message());
  PyErr_Format(PyExc_AttributeError, "gridbuf.Buffer has no %s here: %s", interface, text.c_str());
  throw PythonError();
}

template <class T>
T value_or_absent(const char* interface, absl::StatusOr<T> value) {
  if (value.ok()) return *std::move(value);
  const ErrorClass reason = error_class_of(value.status());
  if (reason != ErrorClass::kNoSuchBuffer && reason != ErrorClass::kBuffer) raise(value.status());
  raise_absent(interface, value.status());
}

void check_device(const char* interface, const BufferObject& buffer) {
  const absl::Status status = check_device_is_on(buffer);
  if (!status.ok()) raise_absent(interface, status);
}

/// The typestr of an element type that only DLPack can name is that of raw bytes, and consumers
/// would believe it.
void check_has_typestr(const char* interface, const BufferObject& buffer) {
  if (buffer.array.memory().dtype.kind() != Kind::kNarrow) return;
  PyErr_Format(PyExc_AttributeError, "%s has no word for dtype %s; use __dlpack__", interface,
               buffer.dtype->name.c_str());
  throw PythonError();
}

void destroy_struct(PyObject* capsule) {
  auto* exported = static_cast<array_struct::ArrayStruct*>(PyCapsule_GetPointer(capsule, nullptr));
  Py_XDECREF(static_cast<PyObject*>(exported->descr));
  Py_XDECREF(static_cast<PyObject*>(PyCapsule_GetContext(capsule)));
  array_struct::destroy(exported);
}

/// A Buffer's own entry (GT-01 ... GT-09). `acquire`, on the host, waits for what the device still
/// does to memory that both reach; memory of one side alone is always current there and has no
/// functions to call.
py::object make_entry(PyObject* self, DeviceType side) {
  const BufferObject& buffer = *object_of(self);
  const bool waits =
      side == DeviceType::kHost && has_side(buffer.array.memory(), DeviceType::kCuda);
  const py::object acquire =
      waits ? steal(PyObject_GetAttrString(self, "synchronize")) : py::object();
  return make_data_entry(self, side, no_halo(buffer.array.memory().view.ndim()), acquire.ptr(),
                         nullptr);
}

}  // namespace

py::object ndarray_of(PyObject* buffer) {
  const BufferObject& object = *object_of(buffer);
  const BufferDescriptor& memory = object.array.memory();
  if (!is_host_readable(memory.device.type)) {
    raise(ErrorClass::kNoSuchBuffer,
          Problem{"memory", memory_name(object.array.memory().device.type), "readable by the host",
                  "use copy(memory=\"host\"), or an interface of the device"});
  }
  wait_for_host(object);
  return make_ndarray(*object.dtype, memory.view, memory.first_element(), memory.readonly, buffer);
}

// ---- The attributes. ----

py::object make_array_interface(const BufferObject& buffer) {
  constexpr char kName[] = "__array_interface__";
  check_has_typestr(kName, buffer);
  const ArrayInterfaceFields fields =
      value_or_absent(kName, array_interface(buffer.array.memory()));
  wait_for_host(buffer);
  return make_dict(fields, *buffer.dtype);
}

/// (AS-01 ... AS-08) The capsule has no name (AS-01); its context is the object, as NumPy's is
/// (AS-07).
py::object make_array_struct(const BufferObject& buffer) {
  constexpr char kName[] = "__array_struct__";
  PyObject* const self = self_of(buffer);
  array_struct::Export exported =
      value_or_absent(kName, array_struct::export_array_struct(buffer.array.memory()));
  wait_for_host(buffer);
  py::object capsule = steal(PyCapsule_New(exported.get(), nullptr, destroy_struct));
  array_struct::ArrayStruct* const made = exported.release();
  if (buffer.array.memory().dtype.kind() == Kind::kStructured && buffer.dtype->descr) {
    made->descr = Py_NewRef(buffer.dtype->descr.ptr());
    made->flags |= array_struct::kHasDescr;
  }
  check(PyCapsule_SetContext(capsule.ptr(), self));
  Py_INCREF(self);
  return capsule;
}

py::object make_cuda_array_interface(const BufferObject& buffer) {
  constexpr char kName[] = "__cuda_array_interface__";
  check_has_typestr(kName, buffer);
  const CudaArrayInterfaceFields fields =
      value_or_absent(kName, cuda_array_interface(buffer.array.memory(), buffer.array.stream()));
  check_device(kName, buffer);
  py::object dict = make_dict(fields, *buffer.dtype);
  set<"stream">(dict, steal(PyLong_FromUnsignedLongLong(fields.stream)));
  return dict;
}

py::object make_data_interface(const BufferObject& buffer) {
  constexpr char kName[] = "__gt_data_interface__";
  PyObject* const self = self_of(buffer);
  check_has_typestr(kName, buffer);
  py::object sides = steal(PyDict_New());
  if (has_side(buffer.array.memory(), DeviceType::kHost)) {
    check(PyDict_SetItem(sides.ptr(), Py_None, make_entry(self, DeviceType::kHost).ptr()));
  }
  if (has_side(buffer.array.memory(), DeviceType::kCuda)) {
    check_device(kName, buffer);
    set<"gpu">(sides, make_entry(self, DeviceType::kCuda));
  }
  return sides;
}

py::object make_data_entry(PyObject* self, DeviceType side, const Halo& halo, PyObject* acquire,
                           PyObject* touch) {
  const BufferObject& buffer = *object_of(self);
  const DataInterfaceFields fields = value_of(data_interface(
      buffer.array.memory(), side, buffer.array.layout().dims(), halo, buffer.array.stream()));
  py::object dict = make_dict(fields, *buffer.dtype);
  if (fields.stream) set<"stream">(dict, steal(PyLong_FromUnsignedLongLong(*fields.stream)));
  set<"dims">(dict, from_dims(fields.dims));
  set<"halo">(dict, tuple_of(fields.halo.size(), [&](int axis) {
                const HaloWidth& width = fields.halo[axis];
                return from_integers(std::array{width.lower, width.upper});
              }));
  if (acquire != nullptr) set<"acquire">(dict, share(acquire));
  if (touch != nullptr) set<"touch">(dict, share(touch));
  return dict;
}

}  // namespace gridbuf::python
