// The interfaces that are dicts or structs: NumPy's, CUDA's, GT4Py's.

module;

#include <Python.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

module gridbuf.python.buffer;

import gridbuf.base;
import gridbuf.interface;
import gridbuf.interface.numpy;
import gridbuf.layout;
import gridbuf.python.support;

namespace gridbuf::python {
namespace {

// ---- Dicts. ----

// The keys of all dicts, as Python's own text objects and made once: a dict is then a few stores,
// and no text is made, hashed or compared.
enum class Key : std::uint8_t {
  kShape,
  kTypestr,
  kDescr,
  kData,
  kStrides,
  kVersion,
  kStream,
  kAcquire,
  kTouch,
  kDims,
  kHalo,
};
constexpr std::array kKeyTexts{"shape",  "typestr", "descr", "data", "strides", "version",
                               "stream", "acquire", "touch", "dims", "halo"};
std::array<PyObject*, kKeyTexts.size()> keys{};

/// A dict in the making.
class Dictionary {
 public:
  Dictionary() : dictionary_(steal(PyDict_New())) {}

  void set(Key key, PyObject* value) {
    check(PyDict_SetItem(dictionary_.ptr(), keys[static_cast<std::size_t>(key)], value));
  }
  void set(Key key, const py::object& value) { set(key, value.ptr()); }
  void set(Key key, std::uint64_t value) { set(key, steal(PyLong_FromUnsignedLongLong(value))); }
  /// The address and whether writing is forbidden.
  void set_data(std::uintptr_t address, bool readonly) {
    const py::object number = steal(PyLong_FromUnsignedLongLong(address));
    set(Key::kData, steal(PyTuple_Pack(2, number.ptr(), readonly ? Py_True : Py_False)));
  }
  void set_dtype(const DTypeRecord& dtype) {
    set(Key::kTypestr, dtype.typestr);
    if (dtype.descr) set(Key::kDescr, dtype.descr);
  }

  py::object take() { return std::move(dictionary_); }

 private:
  py::object dictionary_;
};

// ---- What an object does not have. ----

/// An interface that the object does not have is an attribute that it does not have, so that
/// `hasattr` answers (XA-18, AI-29, CAI-24).
[[noreturn]] void raise_absent(const char* interface, const absl::Status& reason) {
  const absl::string_view text = reason.message();
  PyErr_Format(PyExc_AttributeError, "gridbuf.Buffer has no %s here: %.*s", interface,
               static_cast<int>(text.size()), text.data());
  throw PythonError();
}

template <class T>
T value_or_absent(const char* interface, absl::StatusOr<T> value) {
  if (value.ok()) return *std::move(value);
  const ErrorClass reason = error_class_of(value.status());
  if (reason == ErrorClass::kNoSuchBuffer || reason == ErrorClass::kBuffer) {
    raise_absent(interface, value.status());
  }
  raise(value.status());
}

void check_or_absent(const char* interface, const absl::Status& status) {
  if (!status.ok()) raise_absent(interface, status);
}

/// The typestr of an element type that only DLPack can name is that of raw bytes, and consumers
/// would believe it.
void check_has_typestr(const char* interface, const BufferObject& buffer) {
  if (buffer.array.memory.dtype.kind() != Kind::kNarrow) return;
  PyErr_Format(PyExc_AttributeError, "%s has no word for dtype %s; use __dlpack__", interface,
               buffer.dtype->name.c_str());
  throw PythonError();
}

// ---- NumPy's array interface (AI-01 ... AI-33). ----

py::object make_array_interface(const BufferObject& buffer) {
  constexpr char kName[] = "__array_interface__";
  check_has_typestr(kName, buffer);
  const ArrayInterfaceFields fields = value_or_absent(kName, array_interface(buffer.array.memory));
  wait_for_host(buffer);
  Dictionary dictionary;
  dictionary.set(Key::kShape, from_integers(fields.shape.span()));
  dictionary.set_dtype(*buffer.dtype);
  dictionary.set_data(fields.data_address, fields.readonly);
  dictionary.set(Key::kStrides, fields.strides_bytes ? from_integers(fields.strides_bytes->span())
                                                     : share(Py_None));
  dictionary.set(Key::kVersion, static_cast<std::uint64_t>(fields.version));
  return dictionary.take();
}

// ---- __array_struct__ (AS-01 ... AS-08). ----

void destroy_struct(PyObject* capsule) {
  auto* exported = static_cast<array_struct::ArrayStruct*>(PyCapsule_GetPointer(capsule, nullptr));
  Py_XDECREF(static_cast<PyObject*>(exported->descr));
  Py_XDECREF(static_cast<PyObject*>(PyCapsule_GetContext(capsule)));
  array_struct::destroy(exported);
}

/// The capsule has no name (AS-01); its context is the object, as NumPy's is (AS-07).
py::object make_array_struct(PyObject* self) {
  constexpr char kName[] = "__array_struct__";
  const BufferObject& buffer = *object_of(self);
  array_struct::Export exported =
      value_or_absent(kName, array_struct::export_array_struct(buffer.array.memory));
  wait_for_host(buffer);
  py::object capsule = steal(PyCapsule_New(exported.get(), nullptr, destroy_struct));
  array_struct::ArrayStruct* const made = exported.release();
  if (buffer.array.memory.dtype.kind() == Kind::kStructured && buffer.dtype->descr) {
    made->descr = Py_NewRef(buffer.dtype->descr.ptr());
    made->flags |= array_struct::kHasDescr;
  }
  check(PyCapsule_SetContext(capsule.ptr(), self));
  Py_INCREF(self);
  return capsule;
}

// ---- The CUDA array interface (CAI-01 ... CAI-30). ----

py::object make_cuda_array_interface(const BufferObject& buffer) {
  constexpr char kName[] = "__cuda_array_interface__";
  check_has_typestr(kName, buffer);
  const CudaArrayInterfaceFields fields =
      value_or_absent(kName, cuda_array_interface(buffer.array.memory, stream_of(buffer)));
  check_or_absent(kName, check_device_is_on(buffer));
  Dictionary dictionary;
  dictionary.set(Key::kShape, from_integers(fields.shape.span()));
  dictionary.set_dtype(*buffer.dtype);
  dictionary.set_data(fields.data_address, fields.readonly);
  dictionary.set(Key::kStrides, fields.strides_bytes ? from_integers(fields.strides_bytes->span())
                                                     : share(Py_None));
  dictionary.set(Key::kStream, fields.stream);
  dictionary.set(Key::kVersion, static_cast<std::uint64_t>(fields.version));
  return dictionary.take();
}

// ---- __gt_data_interface__ (GT-01 ... GT-09). ----

py::object from_halo(const Halo& halo) {
  py::object pairs = steal(PyTuple_New(halo.size()));
  for (int axis = 0; axis < halo.size(); ++axis) {
    PyTuple_SET_ITEM(pairs.ptr(), axis,
                     steal(Py_BuildValue("(LL)", static_cast<long long>(halo[axis].lower),
                                         static_cast<long long>(halo[axis].upper)))
                         .release()
                         .ptr());
  }
  return pairs;
}

/// A Buffer's own entry. `acquire`, on the host, waits for what the device still does to memory
/// that both reach; memory of one side alone is always current there and has no functions to call.
py::object make_entry(PyObject* self, DeviceType side) {
  const BufferObject& buffer = *object_of(self);
  const bool waits = side == DeviceType::kHost && has_side(buffer.array.memory, DeviceType::kCuda);
  const py::object acquire =
      waits ? steal(PyObject_GetAttrString(self, "synchronize")) : py::object();
  return make_data_entry(self, side, no_halo(buffer.array.memory.view.ndim()), acquire.ptr(),
                         nullptr);
}

py::object make_data_interface(PyObject* self) {
  constexpr char kName[] = "__gt_data_interface__";
  const BufferObject& buffer = *object_of(self);
  check_has_typestr(kName, buffer);
  py::object sides = steal(PyDict_New());
  if (has_side(buffer.array.memory, DeviceType::kHost)) {
    check(PyDict_SetItem(sides.ptr(), Py_None, make_entry(self, DeviceType::kHost).ptr()));
  }
  if (has_side(buffer.array.memory, DeviceType::kCuda)) {
    check_or_absent(kName, check_device_is_on(buffer));
    const py::object key = make_text(kGpuKey);
    check(PyDict_SetItem(sides.ptr(), key.ptr(), make_entry(self, DeviceType::kCuda).ptr()));
  }
  return sides;
}

}  // namespace

py::object make_data_entry(PyObject* self, DeviceType side, const Halo& halo, PyObject* acquire,
                           PyObject* touch) {
  const BufferObject& buffer = *object_of(self);
  const DataInterfaceFields fields = value_of(data_interface(
      buffer.array.memory, side, buffer.array.layout.dims(), halo, stream_of(buffer)));
  Dictionary dictionary;
  dictionary.set(Key::kShape, from_integers(fields.shape.span()));
  dictionary.set_dtype(*buffer.dtype);
  dictionary.set_data(fields.data_address, fields.readonly);
  dictionary.set(Key::kStrides, from_integers(fields.strides_bytes.span()));
  dictionary.set(Key::kVersion, static_cast<std::uint64_t>(fields.version));
  if (fields.stream) dictionary.set(Key::kStream, *fields.stream);
  dictionary.set(Key::kDims, from_dims(fields.dims));
  dictionary.set(Key::kHalo, from_halo(fields.halo));
  if (acquire != nullptr) dictionary.set(Key::kAcquire, acquire);
  if (touch != nullptr) dictionary.set(Key::kTouch, touch);
  return dictionary.take();
}

void make_interface_keys() {
  for (std::size_t i = 0; i < keys.size(); ++i) {
    keys[i] = steal(PyUnicode_InternFromString(kKeyTexts[i])).release().ptr();
  }
}

PyObject* array_interface_getter(PyObject* self, void*) {
  return guarded([&] { return make_array_interface(*object_of(self)); });
}
PyObject* array_struct_getter(PyObject* self, void*) {
  return guarded([&] { return make_array_struct(self); });
}
PyObject* cuda_array_interface_getter(PyObject* self, void*) {
  return guarded([&] { return make_cuda_array_interface(*object_of(self)); });
}
PyObject* data_interface_getter(PyObject* self, void*) {
  return guarded([&] { return make_data_interface(self); });
}

}  // namespace gridbuf::python
