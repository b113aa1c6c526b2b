// gridbuf_python.h: arrays of Python in C++17, by DLPack. Include gridbuf_pybind11.h or
// gridbuf_nanobind.h, which make casters of it.
//
// An `argument<T, rank, memory>` takes any object with DLPack, and shares its memory for as long as
// it lives. It is a `view<T, rank>`: a(i, j), a.extent(0), a.stride(0). `memory` is
// GRIDBUF_MEMORY_HOST, or GRIDBUF_MEMORY_CUDA for memory that is ready on the legacy default
// stream. An array on both sides, such as a storage, gives that side. `argument<const T>` takes
// read-only arrays, too. Any other array is a TypeError, whose text says what is wrong. An
// `argument<void>` takes any type, and is a handle.
//
// `share` makes an `array<T>` of an argument, which may outlive the call. A returned `array<T>` or
// `argument<void>` becomes an object with DLPack that owns the memory: `numpy.from_dlpack(f())` and
// `numpy.asarray(f())` do not copy. It has `shape` and `dtype`.
//
// A `gridbuf::error` of a function is a ValueError, TypeError, IndexError, MemoryError or
// BufferError by its status, as gridbuf.h says, else a RuntimeError.
//
// Of several overloads, the first that fits is called. If none fits, the error is that of the first
// with an `argument`. Arguments in std::optional, std::vector, std::map and std::variant are
// possible; for those nanobind raises its own TypeError, with the signature.
#ifndef GRIDBUF_PYTHON_H_
#define GRIDBUF_PYTHON_H_

#include <Python.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <exception>
#include <memory>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>

#include "gridbuf.hpp"

namespace gridbuf {

namespace python {

/// Python's error is set.
struct error_is_set {};

// DLPack's structs, under names that dlpack.h does not define.
struct dl_version {
  std::uint32_t major, minor;
};
struct dl_tensor {
  void* data;
  std::int32_t device_type, device_id, ndim;
  std::uint8_t code, bits;
  std::uint16_t lanes;
  std::int64_t *shape, *strides;
  std::uint64_t byte_offset;
};
struct dl_unversioned {
  dl_tensor tensor;
  void* context;
  void (*deleter)(dl_unversioned*);
};
struct dl_versioned {
  dl_version version;
  void* context;
  void (*deleter)(dl_versioned*);
  std::uint64_t flags;
  dl_tensor tensor;
};
struct dl_exchange {
  dl_version version;
  const dl_exchange* previous;
  int (*allocate)(dl_tensor* prototype, dl_versioned** out, void* context,
                  void (*set_error)(void* context, const char* kind, const char* text));
  int (*from_object)(void* object, dl_versioned** out);
  int (*to_object)(dl_versioned* tensor, void** out);
  int (*borrow)(void* object, dl_tensor* out);
  int (*current_stream)(std::int32_t device_type, std::int32_t device_id, void** out);
};
constexpr char kVersioned[] = "dltensor_versioned", kUnversioned[] = "dltensor",
               kExchangeCapsule[] = "dlpack_exchange_api";

struct dl_deleter {
  template <class Tensor>
  void operator()(Tensor* tensor) const noexcept {
    if (tensor->deleter != nullptr) tensor->deleter(tensor);
  }
};
using owned_tensor = std::unique_ptr<dl_versioned, dl_deleter>;
struct reference_deleter {
  void operator()(PyObject* object) const noexcept { Py_DECREF(object); }
};
using reference = std::unique_ptr<PyObject, reference_deleter>;

/// A name that is made once.
template <const char* text>
PyObject* name() {
  static PyObject* const made = PyUnicode_InternFromString(text);
  return made;
}
inline constexpr char kExchange[] = "__dlpack_c_exchange_api__", kMethod[] = "__dlpack__",
                      kDevice[] = "__dlpack_device__", kMaxVersion[] = "max_version",
                      kDlDevice[] = "dl_device", kCopy[] = "copy", kNegated[] = "is_neg",
                      kStorage[] = "untyped_storage", kAddress[] = "data_ptr";

/// Whether the object is NumPy's array, whose memory is the host's and has its values.
inline bool is_ndarray(PyObject* object) {
  return std::strcmp(Py_TYPE(object)->tp_name, "numpy.ndarray") == 0;
}

/// Whether the host reads memory of DLPack's device type.
inline bool is_of_host(long memory) {
  return memory == GRIDBUF_MEMORY_HOST || memory == GRIDBUF_MEMORY_PINNED ||
         memory == GRIDBUF_MEMORY_MANAGED;
}

/// What the object's method of that name returns; null if it has no such method.
template <const char* text>
reference call_or_none(PyObject* object) {
  PyObject* found = nullptr;
#if PY_VERSION_HEX >= 0x030D0000
  const int status = PyObject_GetOptionalAttr(object, name<text>(), &found);
#else
  const int status = _PyObject_LookupAttr(object, name<text>(), &found);
#endif
  if (status < 0) throw error_is_set();
  const reference method(found);
  reference answer(found == nullptr ? nullptr : PyObject_CallNoArgs(found));
  if (found != nullptr && !answer) throw error_is_set();
  return answer;
}

/// The DLPack device type of an object; that of the host if it does not say.
inline long memory_of(PyObject* object) {
  if (is_ndarray(object)) return GRIDBUF_MEMORY_HOST;
  const reference device = call_or_none<kDevice>(object);
  if (!device || !PyTuple_Check(device.get()) || PyTuple_GET_SIZE(device.get()) != 2)
    return GRIDBUF_MEMORY_HOST;
  const long type = PyLong_AsLong(PyTuple_GET_ITEM(device.get(), 0));
  if (type == -1 && PyErr_Occurred()) throw error_is_set();
  return type;
}

/// PyTorch's `__dlpack__` exports tensors whose values are not in their memory: lazily negated
/// ones, and those without memory (fake ones, wrappers), whose address is their offset.
inline void check_memory_has_values(PyObject* object, const dl_tensor& tensor) {
  const reference negated = call_or_none<kNegated>(object);
  if (!negated) return;
  // A null address is refused with the tensor's other fields.
  const reference storage = tensor.data ? call_or_none<kStorage>(object) : nullptr;
  const reference address = storage ? call_or_none<kAddress>(storage.get()) : nullptr;
  const int has_memory = address ? PyObject_IsTrue(address.get()) : 1;
  if (has_memory < 0) throw error_is_set();
  if (negated.get() != Py_True && has_memory == 1) return;
  PyErr_SetString(PyExc_BufferError,
                  has_memory == 1
                      ? "the tensor's memory has its values negated; pass tensor.resolve_neg()"
                      : "the tensor has no memory; pass one that has its elements in memory");
  throw error_is_set();
}

/// An unversioned tensor in a versioned one.
inline owned_tensor with_version(dl_unversioned* tensor) {
  std::unique_ptr<dl_unversioned, dl_deleter> held(tensor);
  auto* made = new dl_versioned{{1, 0}, tensor, nullptr, 0, tensor->tensor};
  made->deleter = [](dl_versioned* self) {
    dl_deleter()(static_cast<dl_unversioned*>(self->context));
    delete self;
  };
  held.release();
  return owned_tensor(made);
}

/// The tensor by __dlpack__; null if the object has no such method. `asks_host`: of a device's
/// array, which may have memory of the host, too.
inline owned_tensor by_method(PyObject* object, bool asks_host) {
  static PyObject* const version = Py_BuildValue("(ii)", 1, 1);
  static PyObject* const host = Py_BuildValue("(ii)", GRIDBUF_MEMORY_HOST, 0);
  static PyObject* const names = PyTuple_Pack(1, name<kMaxVersion>());
  static PyObject* const all_names =
      PyTuple_Pack(3, name<kMaxVersion>(), name<kDlDevice>(), name<kCopy>());
  PyObject* const arguments[] = {object, version, host, Py_False};
  reference capsule(
      PyObject_VectorcallMethod(name<kMethod>(), arguments, 1, asks_host ? all_names : names));
  if (!capsule) {
    const bool before_1 = PyErr_ExceptionMatches(PyExc_TypeError) != 0;
    if (!before_1 && !PyErr_ExceptionMatches(PyExc_AttributeError)) throw error_is_set();
#if PY_VERSION_HEX >= 0x030C0000
    PyObject* const raised = PyErr_GetRaisedException();
    const bool has_method = PyObject_HasAttr(object, name<kMethod>()) != 0;
    PyErr_SetRaisedException(raised);
#else
    PyObject *type, *value, *trace;
    PyErr_Fetch(&type, &value, &trace);
    const bool has_method = PyObject_HasAttr(object, name<kMethod>()) != 0;
    PyErr_Restore(type, value, trace);
#endif
    if (has_method && !before_1) throw error_is_set();
    PyErr_Clear();
    if (!has_method) return {};
    capsule.reset(PyObject_CallMethodNoArgs(object, name<kMethod>()));
  }
  if (!capsule) throw error_is_set();
  const bool versioned = PyCapsule_IsValid(capsule.get(), kVersioned) != 0;
  void* found = versioned || PyCapsule_IsValid(capsule.get(), kUnversioned)
                    ? PyCapsule_GetPointer(capsule.get(), versioned ? kVersioned : kUnversioned)
                    : nullptr;
  if (found == nullptr) {
    PyErr_Format(PyExc_BufferError,
                 "__dlpack__ returned %R, but must return a capsule \"dltensor_versioned\" or "
                 "\"dltensor\"; report it to the exporter",
                 capsule.get());
    throw error_is_set();
  }
  if (versioned && static_cast<dl_versioned*>(found)->version.major != 1) {
    PyErr_Format(PyExc_BufferError,
                 "the tensor is of DLPack %u, but must be of DLPack 1; update the reader of arrays",
                 static_cast<dl_versioned*>(found)->version.major);
    throw error_is_set();  // the capsule still owns it
  }
  if (PyCapsule_SetName(capsule.get(), versioned ? "used_dltensor_versioned" : "used_dltensor") !=
      0)
    throw error_is_set();
  return versioned ? owned_tensor(static_cast<dl_versioned*>(found))
                   : with_version(static_cast<dl_unversioned*>(found));
}

}  // namespace python

/// An array that a function takes. `rank` -1 is any rank.
template <class T, int rank = -1, int memory = GRIDBUF_MEMORY_HOST>
class argument : public view<T, rank> {
 public:
  argument(const view<T, rank>& elements, python::owned_tensor tensor)
      : view<T, rank>(elements), tensor_(std::move(tensor)) {}
  /// The array, which keeps the memory. Use the argument no more.
  array<T> share() && {
    return array<T>::from_dlpack(reinterpret_cast<DLManagedTensorVersioned*>(tensor_.release()));
  }

 private:
  python::owned_tensor tensor_;
};
/// Of any element type, rank and, with `memory` 0, device.
template <int rank, int memory>
class argument<void, rank, memory> {
 public:
  explicit argument(gridbuf_array* handle) : handle_(handle) {}
  gridbuf_array* get() const noexcept { return handle_.get(); }

 private:
  std::unique_ptr<gridbuf_array, detail::array_deleter> handle_;
};

namespace python {

[[noreturn]] inline void refuse(const std::string& what, const std::string& found,
                                const std::string& wanted, const char* remedy) {
  throw error(GRIDBUF_TYPE, "the array's " + what + " is " + found + ", but must be " + wanted +
                                " for this function; " + remedy);
}

inline std::string memory_name(int memory) {
  return memory == GRIDBUF_MEMORY_HOST   ? "the host's"
         : memory == GRIDBUF_MEMORY_CUDA ? "a CUDA device's"
                                         : "of DLPack's device type " + std::to_string(memory);
}

/// The text of what an argument takes, for the signatures of functions.
template <class T, int rank, int memory>
constexpr std::size_t write_signature(char* out) {
  const char* type = "any element type";
  if constexpr (!std::is_void_v<T>) type = dtype_name<T>();
  const char number[] = {static_cast<char>('0' + rank / 10), static_cast<char>('0' + rank % 10), 0};
  const char* const parts[] = {"typing.Annotated[gridbuf.array, \"",
                               type,
                               rank < 0 ? "" : ", ndim ",
                               rank < 0    ? ""
                               : rank < 10 ? number + 1
                                           : number,
                               std::is_void_v<T> || std::is_const_v<T> ? "" : ", writable",
                               memory == GRIDBUF_MEMORY_CUDA ? ", of a CUDA device" : "",
                               "\"]"};
  std::size_t size = 0;
  for (const char* part : parts) {
    for (; *part != 0; ++part, ++size) {
      if (out != nullptr) out[size] = *part;
    }
  }
  return size;
}
template <class T, int rank, int memory>
struct signature {
  constexpr signature() { write_signature<T, rank, memory>(text); }
  char text[write_signature<T, rank, memory>(nullptr) + 1] = {};
};

/// DLPack's code of an element type.
template <class T>
constexpr std::uint8_t dl_code() {
  using U = std::remove_const_t<T>;
  if constexpr (std::is_same_v<U, bool>) return 6;
  if constexpr (std::is_floating_point_v<U>) return 2;
  if constexpr (std::is_integral_v<U>) return std::is_signed_v<U> ? 0 : 1;
  return 5;
}
inline std::string type_name(const dl_tensor& tensor) {
  static const char* const names[] = {"int",    "uint",    "float", "opaque",
                                      "bfloat", "complex", "bool"};
  const std::string code = tensor.code < 7
                               ? names[tensor.code]
                               : "of DLPack's code " + std::to_string(tensor.code) + ", ";
  return code + (tensor.code == 6 && tensor.bits == 8 ? "" : std::to_string(tensor.bits)) +
         (tensor.lanes == 1 ? "" : "x" + std::to_string(tensor.lanes));
}

/// The elements of a tensor. Checked here without a call of the library, for speed: a whole check
/// is part of `share`.
template <class T, int rank>
view<T, rank> elements_of(const dl_versioned& managed) {
  const dl_tensor& tensor = managed.tensor;
  if (tensor.code != dl_code<T>() || tensor.bits != 8 * sizeof(T) || tensor.lanes != 1)
    refuse("element type", type_name(tensor), dtype_name<T>(), "convert it");
  const int ndim = tensor.ndim;
  if (rank >= 0 && ndim != rank)
    refuse("number of dimensions", std::to_string(ndim), std::to_string(rank), "reshape it");
  if (!std::is_const_v<T> && (managed.flags & 1) != 0)
    refuse("memory", "read-only", "writable", "copy it");
  if (ndim < 0 || ndim > GRIDBUF_MAX_NDIM || (ndim > 0 && tensor.shape == nullptr))
    refuse("shape", "of " + std::to_string(ndim) + " dimensions", "one of 0 to 64", "report it");
  std::int64_t dense[GRIDBUF_MAX_NDIM];
  const std::int64_t* strides = tensor.strides;
  if (strides == nullptr) {  // C order, allowed before DLPack 1.2
    std::uint64_t size = 1;
    for (int axis = ndim; axis-- > 0;) {
      dense[axis] = static_cast<std::int64_t>(size);
      size *= static_cast<std::uint64_t>(tensor.shape[axis]);
    }
    strides = dense;
  }
  bool empty = false;
  for (int axis = 0; axis < ndim; ++axis) {
    if (tensor.shape[axis] < 0)
      refuse("extent", std::to_string(tensor.shape[axis]), "at least 0", "report it");
    empty = empty || tensor.shape[axis] == 0;
  }
  const std::uintptr_t address = reinterpret_cast<std::uintptr_t>(tensor.data) + tensor.byte_offset;
  if (!empty && (tensor.data == nullptr || address % alignof(T) != 0))
    refuse("address", std::to_string(address), "a multiple of " + std::to_string(alignof(T)),
           "copy it");
  return view<T, rank>(reinterpret_cast<T*>(address), ndim, tensor.shape, strides);
}

/// Python's exception class for a status.
inline PyObject* exception_of(gridbuf_status status) {
  switch (status) {
    case GRIDBUF_VALUE:
      return PyExc_ValueError;
    case GRIDBUF_TYPE:
      return PyExc_TypeError;
    case GRIDBUF_INDEX:
      return PyExc_IndexError;
    case GRIDBUF_MEMORY:
      return PyExc_MemoryError;
    case GRIDBUF_BUFFER:
      return PyExc_BufferError;
    default:
      return PyExc_RuntimeError;
  }
}

/// For the translators of pybind11 and nanobind: sets Python's error for a `gridbuf::error`.
inline void translate(const std::exception_ptr& thrown) {
  try {
    std::rethrow_exception(thrown);
  } catch (const gridbuf::error& failed_call) {
    PyErr_SetString(exception_of(failed_call.status()), failed_call.what());
  }
}

/// Registers the translator, once. Of the binding library's header.
inline void (*register_translator)() = nullptr;

/// The library is not ready when an extension is loaded. So the translator is registered at the
/// first argument or error. A thread without Python's lock must not wait for it.
inline bool translate_by(void (*registration)()) {
  register_translator = registration;
  detail::before_error = [] {
    if (PyGILState_Check() != 0) register_translator();
  };
  return true;
}

/// The array of an object, or none if it has no DLPack. Throws `error` with GRIDBUF_TYPE for an
/// array that the argument does not take, and `error_is_set` for an exporter that fails.
template <class T, int rank, int memory>
std::optional<argument<T, rank, memory>> load(PyObject* object) {
  register_translator();
  const auto refuse_memory = [](long found) {
    refuse("memory", memory_name(static_cast<int>(found)), memory_name(memory), "copy it there");
  };
  const long first = memory == GRIDBUF_MEMORY_HOST ? memory_of(object) : long{GRIDBUF_MEMORY_HOST};
  owned_tensor tensor;
  try {
    tensor = by_method(object, !is_of_host(first));
  } catch (const error_is_set&) {
    // The exporter has no memory of the host, and says so by an exception of its choice.
    if (is_of_host(first) || !PyErr_ExceptionMatches(PyExc_Exception)) throw;
    PyErr_Clear();
    refuse_memory(first);
  }
  if (!tensor) return {};
  if (!is_ndarray(object)) check_memory_has_values(object, tensor->tensor);
  // Memory of a device is refused before gridbuf reads the tensor: there may be no driver for it.
  const int found_memory = tensor->tensor.device_type;
  const bool fits = memory == 0 || found_memory == memory ||
                    found_memory == GRIDBUF_MEMORY_MANAGED ||
                    (memory == GRIDBUF_MEMORY_HOST && is_of_host(found_memory));
  if (!fits) refuse_memory(found_memory);
  if constexpr (std::is_void_v<T>) {
    gridbuf_array* handle = nullptr;
    if (gridbuf_array_from_dlpack(reinterpret_cast<DLManagedTensorVersioned*>(tensor.release()),
                                  nullptr, &handle) != GRIDBUF_OK) {
      PyErr_SetString(PyExc_BufferError, gridbuf_last_error());
      throw error_is_set();
    }
    argument<void, rank, memory> made(handle);
    if (rank >= 0) {
      gridbuf_info info;
      info.struct_bytes = sizeof info;
      check(gridbuf_array_info(handle, &info));
      if (info.ndim != rank)
        refuse("number of dimensions", std::to_string(info.ndim), std::to_string(rank),
               "reshape it");
    }
    return made;
  } else {
    const view<T, rank> elements = elements_of<T, rank>(*tensor);
    return argument<T, rank, memory>(elements, std::move(tensor));
  }
}

// ---- Python objects of arrays ----

struct exported_object {
  PyObject ob_base;
  gridbuf_array* array;
};

template <class Tensor>
void end_capsule(PyObject* capsule) {
  const char* const tensor_name = std::is_same_v<Tensor, dl_versioned> ? kVersioned : kUnversioned;
  if (PyCapsule_IsValid(capsule, tensor_name))
    dl_deleter()(static_cast<Tensor*>(PyCapsule_GetPointer(capsule, tensor_name)));
}

inline PyObject* failed() {
  PyErr_SetString(PyExc_BufferError, gridbuf_last_error());
  return nullptr;
}

/// What an exported object is; none with Python's error set.
inline std::optional<gridbuf_info> exported_info(PyObject* self) {
  gridbuf_info info;
  info.struct_bytes = sizeof info;
  if (gridbuf_array_info(reinterpret_cast<exported_object*>(self)->array, &info) == GRIDBUF_OK)
    return info;
  failed();
  return {};
}

inline PyObject* exported_device(PyObject* self, PyObject*) {
  const std::optional<gridbuf_info> info = exported_info(self);
  return info ? Py_BuildValue("(ii)", info->memory, info->device_id) : nullptr;
}

inline PyObject* exported_shape(PyObject* self, void*) {
  const std::optional<gridbuf_info> info = exported_info(self);
  reference shape(info ? PyTuple_New(info->ndim) : nullptr);
  for (int axis = 0; shape && axis < info->ndim; ++axis) {
    PyObject* const extent = PyLong_FromLongLong(info->shape[axis]);
    if (extent == nullptr) return nullptr;
    PyTuple_SET_ITEM(shape.get(), axis, extent);
  }
  return shape.release();
}

/// NumPy's dtype; the name of a type that NumPy does not have.
inline PyObject* exported_dtype(PyObject* self, void*) {
  const std::optional<gridbuf_info> info = exported_info(self);
  const reference numpy(info ? PyImport_ImportModule("numpy") : nullptr);
  if (!numpy) return nullptr;
  PyObject* const dtype = PyObject_CallMethod(numpy.get(), "dtype", "s", info->dtype);
  if (dtype != nullptr || !PyErr_ExceptionMatches(PyExc_TypeError)) return dtype;
  PyErr_Clear();
  return PyUnicode_FromString(info->dtype);
}

inline PyObject* exported_repr(PyObject* self) {
  const std::optional<gridbuf_info> info = exported_info(self);
  const reference shape(exported_shape(self, nullptr));
  if (!info || !shape) return nullptr;
  return PyUnicode_FromFormat("<gridbuf.ExtensionArray: %s, shape %R, memory %s>", info->dtype,
                              shape.get(), memory_name(info->memory).c_str());
}

/// NumPy's protocol: the memory as an ndarray.
inline PyObject* exported_array(PyObject* self, PyObject* arguments, PyObject* keywords) {
  static const char* const names[] = {"dtype", "copy", nullptr};
  PyObject *dtype = Py_None, *copy = Py_None;
  if (!PyArg_ParseTupleAndKeywords(arguments, keywords, "|OO:__array__", const_cast<char**>(names),
                                   &dtype, &copy))
    return nullptr;
  const reference numpy(PyImport_ImportModule("numpy"));
  reference shared(numpy ? PyObject_CallMethod(numpy.get(), "from_dlpack", "O", self) : nullptr);
  if (!shared) return nullptr;
  const int copied = copy == Py_None ? 0 : PyObject_IsTrue(copy);
  if (copied < 0) return nullptr;
  reference made(PyObject_CallMethod(numpy.get(), copied != 0 ? "array" : "asarray", "OO",
                                     shared.get(), dtype));
  if (made && copy != Py_None && copied == 0 && made.get() != shared.get()) {
    PyErr_Format(PyExc_ValueError,
                 "copy is False, but the elements must be converted to %R; leave copy out", dtype);
    return nullptr;
  }
  return made.release();
}

inline PyObject* exported_dlpack(PyObject* self, PyObject* arguments, PyObject* keywords) {
  static const char* const names[] = {"stream", "max_version", "dl_device", "copy", nullptr};
  PyObject *stream = Py_None, *max_version = Py_None, *device = Py_None, *copy = Py_None;
  if (!PyArg_ParseTupleAndKeywords(arguments, keywords, "|$OOOO:__dlpack__",
                                   const_cast<char**>(names), &stream, &max_version, &device,
                                   &copy)) {
    return nullptr;
  }
  long major = 0;
  if (max_version != Py_None) {
    if (!PyTuple_Check(max_version) || PyTuple_GET_SIZE(max_version) != 2) {
      PyErr_Format(PyExc_TypeError,
                   "max_version is %R, but must be (major, minor) or None; leave it out",
                   max_version);
      return nullptr;
    }
    major = PyLong_AsLong(PyTuple_GET_ITEM(max_version, 0));
    if (major == -1 && PyErr_Occurred()) return nullptr;
  }
  const reference own(exported_device(self, nullptr));
  if (!own) return nullptr;
  if (stream != Py_None && PyLong_AsLong(PyTuple_GET_ITEM(own.get(), 0)) == GRIDBUF_MEMORY_HOST) {
    PyErr_Format(PyExc_BufferError, "stream is %R, but must be None for memory of the host",
                 stream);
    return nullptr;
  }
  if (device != Py_None) {
    if (!PyTuple_Check(device) || PyTuple_GET_SIZE(device) != 2) {
      PyErr_Format(PyExc_TypeError,
                   "dl_device is %R, but must be (device type, number) or None; leave it out",
                   device);
      return nullptr;
    }
    const int same = PyObject_RichCompareBool(own.get(), device, Py_EQ);
    if (same < 0) return nullptr;
    if (same == 0) {
      PyErr_Format(
          PyExc_BufferError,
          "dl_device is %R, but must be %R, where the memory is; copy the array afterwards", device,
          own.get());
      return nullptr;
    }
  }
  const int copied = PyObject_IsTrue(copy);
  if (copied < 0) return nullptr;
  gridbuf_array* const array = reinterpret_cast<exported_object*>(self)->array;
  std::unique_ptr<gridbuf_array, detail::array_deleter> made;
  if (copied != 0) {
    gridbuf_array* handle = nullptr;
    if (gridbuf_array_copy(array, 0, &handle) != GRIDBUF_OK) return failed();
    made.reset(handle);
  }
  gridbuf_array* const source = made ? made.get() : array;
  DLManagedTensorVersioned* out = nullptr;
  if (gridbuf_array_wait(source) != GRIDBUF_OK ||
      gridbuf_array_to_dlpack(source, &out) != GRIDBUF_OK)
    return failed();
  owned_tensor tensor(reinterpret_cast<dl_versioned*>(out));
  PyObject* capsule = nullptr;
  if (major >= 1) {
    if (copied != 0) tensor->flags |= 2;  // DLPACK_FLAG_BITMASK_IS_COPIED
    capsule = PyCapsule_New(tensor.get(), kVersioned, end_capsule<dl_versioned>);
    if (capsule != nullptr) tensor.release();
    return capsule;
  }
  if ((tensor->flags & 1) != 0) {
    PyErr_SetString(
        PyExc_BufferError,
        "the array is read-only, which DLPack before 1.0 cannot say; pass max_version=(1, 0)");
    return nullptr;
  }
  auto old = std::make_unique<dl_unversioned>(
      dl_unversioned{tensor->tensor, tensor.get(), [](dl_unversioned* self_) {
                       dl_deleter()(static_cast<dl_versioned*>(self_->context));
                       delete self_;
                     }});
  capsule = PyCapsule_New(old.get(), kUnversioned, end_capsule<dl_unversioned>);
  if (capsule != nullptr) old.release(), tensor.release();
  return capsule;
}

// ---- The exchange table of these objects. ----

inline PyTypeObject* exported_type();

inline int table_allocate(dl_tensor* prototype, dl_versioned** out, void* context,
                          void (*set_error)(void*, const char*, const char*)) {
  *out = nullptr;
  const std::string dtype = type_name(*prototype);
  gridbuf_options options = GRIDBUF_OPTIONS_INIT;
  options.ndim = prototype->ndim, options.shape = prototype->shape, options.dtype = dtype.c_str();
  options.memory = prototype->device_type;
  gridbuf_array* made = nullptr;
  DLManagedTensorVersioned* tensor = nullptr;
  if (gridbuf_array_create(&options, &made) != GRIDBUF_OK ||
      gridbuf_array_to_dlpack(made, &tensor) != GRIDBUF_OK)
    set_error(context, "RuntimeError", gridbuf_last_error());
  gridbuf_array_release(made);
  *out = reinterpret_cast<dl_versioned*>(tensor);
  return tensor == nullptr ? -1 : 0;
}

inline int table_from_object(void* object, dl_versioned** out) {
  *out = nullptr;
  if (!PyObject_TypeCheck(static_cast<PyObject*>(object), exported_type())) {
    PyErr_SetString(PyExc_TypeError,
                    "the object is not of the type whose exchange table this is; look the table up "
                    "on the object's type");
    return -1;
  }
  DLManagedTensorVersioned* tensor = nullptr;
  if (gridbuf_array_to_dlpack(static_cast<exported_object*>(object)->array, &tensor) !=
      GRIDBUF_OK) {
    failed();
    return -1;
  }
  *out = reinterpret_cast<dl_versioned*>(tensor);
  return 0;
}

inline PyObject* owning_object(gridbuf_array* handle) {
  PyTypeObject* const type = exported_type();
  PyObject* const made = type == nullptr ? nullptr : type->tp_alloc(type, 0);
  if (made == nullptr) {
    gridbuf_array_release(handle);
    return nullptr;
  }
  reinterpret_cast<exported_object*>(made)->array = handle;
  return made;
}

inline int table_to_object(dl_versioned* tensor, void** out) {
  gridbuf_array* made = nullptr;
  *out = gridbuf_array_from_dlpack(reinterpret_cast<DLManagedTensorVersioned*>(tensor), nullptr,
                                   &made) == GRIDBUF_OK
             ? owning_object(made)
             : failed();
  return *out == nullptr ? -1 : 0;
}

inline int table_current_stream(std::int32_t device_type, std::int32_t, void** out) {
  std::uint64_t stream = 0;
  if (device_type != GRIDBUF_MEMORY_HOST) {
    gridbuf_set_stream(1, &stream);
    gridbuf_set_stream(stream, nullptr);
  }
  *out = reinterpret_cast<void*>(static_cast<std::uintptr_t>(stream));
  return 0;
}

inline PyTypeObject* exported_type() {
  static PyMethodDef methods[] = {
      {"__dlpack__", reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(exported_dlpack)),
       METH_VARARGS | METH_KEYWORDS, "A DLPack capsule of the array, without a copy."},
      {"__dlpack_device__", exported_device, METH_NOARGS,
       "DLPack's device type and the device's number."},
      {"__array__", reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(exported_array)),
       METH_VARARGS | METH_KEYWORDS, "The array as one of NumPy, without a copy."},
      {nullptr, nullptr, 0, nullptr}};
  static PyGetSetDef properties[] = {
      {"shape", exported_shape, nullptr, "The extents.", nullptr},
      {"dtype", exported_dtype, nullptr, "The element type, of NumPy.", nullptr},
      {nullptr, nullptr, nullptr, nullptr, nullptr}};
  static PyType_Slot slots[] = {
      {Py_tp_methods, methods},
      {Py_tp_getset, properties},
      {Py_tp_repr, reinterpret_cast<void*>(exported_repr)},
      {Py_tp_dealloc, reinterpret_cast<void*>(+[](PyObject* self) {
         gridbuf_array_release(reinterpret_cast<exported_object*>(self)->array);
         PyTypeObject* const type = Py_TYPE(self);
         type->tp_free(self);
         Py_DECREF(type);
       })},
      {Py_tp_doc, const_cast<char*>("An array of gridbuf, by DLPack.")},
      {0, nullptr}};
  static PyType_Spec spec = {"gridbuf.ExtensionArray", sizeof(exported_object), 0,
                             Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION, slots};
  static const dl_exchange table = {
      {1, 3},          nullptr, table_allocate,      table_from_object,
      table_to_object, nullptr, table_current_stream};
  static PyTypeObject* const type = [] {
    const reference capsule(
        PyCapsule_New(const_cast<dl_exchange*>(&table), kExchangeCapsule, nullptr));
    reference made(capsule ? PyType_FromSpec(&spec) : nullptr);
    if (made && PyObject_SetAttr(made.get(), name<kExchange>(), capsule.get()) != 0) made.reset();
    return reinterpret_cast<PyTypeObject*>(made.release());
  }();
  return type;
}

/// A Python object that shares the array; null with Python's error set.
inline PyObject* to_object(gridbuf_array* array) {
  gridbuf_array* handle = nullptr;
  const gridbuf_item all = ellipsis;
  return gridbuf_array_view(array, &all, 1, &handle) == GRIDBUF_OK ? owning_object(handle)
                                                                   : failed();
}

}  // namespace python
}  // namespace gridbuf

#endif  // GRIDBUF_PYTHON_H_
