// The functions of the package that take arrays from anywhere.

module;

#include <pybind11/pybind11.h>

#include <cstdint>
#include <optional>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

module gridbuf.python.buffer;

import gridbuf.alloc;
import gridbuf.array;
import gridbuf.base;
import gridbuf.device.registry;
import gridbuf.device;
import gridbuf.interface.numpy;
import gridbuf.interface;
import gridbuf.layout;
import gridbuf.python.support;

namespace gridbuf::python {
namespace {

[[noreturn]] void raise_missing(const Signature& signature) {
  raise(ErrorClass::kType, std::string(signature.function) + "() needs " + signature.names[0] +
                               "; pass it as the first argument");
}

// ---- CuPy. ----

py::object load_cupy() {
  if (emulated_device_is_on()) {
    raise(ErrorClass::kDeviceUnavailable,
          "CuPy arrays need a CUDA device, but the emulated device is switched on; use as_buffer");
  }
  py::object cupy = steal_or_none(PyImport_ImportModule("cupy"));
  if (cupy) return cupy;
  if (!take_error(PyExc_ImportError)) throw PythonError();
  raise(ErrorClass::kDeviceUnavailable,
        "CuPy arrays need the package cupy, which cannot be imported; install the CuPy of your "
        "CUDA version, or use as_buffer");
}

py::object member(const py::object& object, const char* name) {
  return steal(PyObject_GetAttrString(object.ptr(), name));
}

/// The handle of CuPy's current stream; its null stream is the legacy default one.
StreamHandle stream_of_cupy(const py::object& cuda) {
  const py::object stream = steal(PyObject_CallMethod(cuda.ptr(), "get_current_stream", nullptr));
  const auto handle = static_cast<StreamHandle>(to_integer(member(stream, "ptr").ptr(), "ptr"));
  return handle == 0 ? kLegacyDefaultStream : handle;
}

py::object cupy_view(const py::object& cupy, const py::object& buffer, bool sync) {
  const BufferDescriptor& memory = array_in(buffer.ptr()).memory;
  if (memory.device.type == DeviceType::kHost) {
    raise(ErrorClass::kNoSuchBuffer,
          Problem{"the array's memory", to_string(memory.device), "reached by CUDA devices",
                  "copy it with buffer.copy(memory=\"device\"), or use as_numpy"});
  }
  const py::object cuda = member(cupy, "cuda");
  if (sync) {
    const StreamHandle own = stream_of(*object_of(buffer.ptr()));
    check(value_of(device_driver())->order_after(own, stream_of_cupy(cuda)));
  }
  const checked::ByteHull hull = byte_hull(memory.view).value_or(checked::ByteHull{});
  std::byte* const lowest = memory.block + hull.lowest_bytes;
  const py::object unowned = steal(PyObject_CallMethod(
      cuda.ptr(), "UnownedMemory", "KLOi", reinterpret_cast<std::uintptr_t>(lowest),
      static_cast<long long>(hull.length_bytes()), buffer.ptr(), memory.device.id));
  const py::object pointer = steal(
      PyObject_CallMethod(cuda.ptr(), "MemoryPointer", "OL", unowned.ptr(),
                          static_cast<long long>(memory.view.offset_bytes - hull.lowest_bytes)));
  const py::object type = member(cupy, "ndarray");
  return steal(PyObject_CallFunction(type.ptr(), "OOOO",
                                     from_integers(memory.view.shape.span()).ptr(),
                                     dtype_of(buffer.ptr())->numpy.ptr(), pointer.ptr(),
                                     from_integers(memory.view.strides_bytes.span()).ptr()));
}

// ---- Bare descriptors. ----

/// Which array interface a dict is: what the caller says, else CUDA's if it names a stream.
std::optional<DeviceType> to_side(PyObject* device) {
  if (device == Py_Ellipsis) return std::nullopt;
  if (device == Py_None) return DeviceType::kHost;
  if (PyUnicode_Check(device) != 0 && utf8(device) == "gpu") return DeviceType::kCuda;
  raise(PyUnicode_Check(device) != 0 ? ErrorClass::kValue : ErrorClass::kType,
        Problem{"device", describe(device), "None or \"gpu\"", "pass None for host memory"});
}

Foreign read_descriptor(PyObject* descriptor, PyObject* owner, std::optional<DeviceType> side) {
  if (PyDict_Check(descriptor) == 0) {
    raise(ErrorClass::kType,
          Problem{"descriptor", describe(descriptor), "a dict",
                  "pass the value of an array interface, or the object itself to as_buffer"});
  }
  if (is_data_dict(descriptor)) return read_data_dict(descriptor, owner, side, nullptr);
  const bool names_stream = PyDict_GetItemString(descriptor, "stream") != nullptr;
  const bool gpu = side ? *side == DeviceType::kCuda : names_stream;
  return gpu ? read_cuda_dict(descriptor, owner) : read_array_dict(descriptor, owner);
}

// ---- Origins. ----

/// An attribute, or what it returns: the form of the proposal was a method.
py::object declared(PyObject* object, AttributeName& name) {
  py::object value = optional_attribute(object, name);
  if (value && PyCallable_Check(value.ptr()) != 0) {
    return steal(PyObject_CallNoArgs(value.ptr()));
  }
  return value;
}

}  // namespace

std::optional<Extents> declared_origin(PyObject* object) {
  if (is_buffer(object)) return origin_of(array_in(object));
  if (!is_exact_ndarray(object)) {  // A plain ndarray has no attributes to look for.
    static AttributeName names[] = {AttributeName("__gt_origin__"),
                                    AttributeName("default_origin")};
    for (AttributeName& name : names) {
      const py::object value = declared(object, name);
      if (value && value.ptr() != Py_None) {
        return to_integers(value.ptr(), utf8(name.get()));
      }
    }
  }
  if (is_ndarray(object)) {
    PyObject* const base = fields_of(object).base;
    if (base != nullptr && is_buffer(base) && dims_behind(object)) return declared_origin(base);
  }
  return std::nullopt;
}

py::object make_cupy_view(const py::object& buffer, bool sync) {
  return cupy_view(load_cupy(), buffer, sync);
}

namespace {

PyObject* as_numpy(PyObject*, PyObject* object) {
  return guarded([&] {
    if (is_exact_ndarray(object)) return share(object);
    const py::object buffer =
        import_buffer(object, nullptr, {.use_names = false, .side = DeviceType::kHost});
    return ndarray_of(buffer.ptr());
  });
}

py::object as_cupy(py::handle obj, py::handle sync_flag) {
  const bool sync = to_flag(sync_flag.ptr(), "sync");
  const py::object cupy = load_cupy();
  const py::object type = member(cupy, "ndarray");
  if (Py_TYPE(obj.ptr()) == reinterpret_cast<PyTypeObject*>(type.ptr())) return share(obj.ptr());
  const ImportOptions options{.sync = sync, .use_names = false, .side = DeviceType::kCuda};
  return cupy_view(cupy, import_buffer(obj.ptr(), nullptr, options), sync);
}

PyObject* as_buffer(PyObject*, PyObject* const* arguments, Py_ssize_t count, PyObject* names) {
  return guarded([&] {
    // The short call: as_buffer(array).
    if (count == 1 && names == nullptr) return import_buffer(arguments[0], nullptr, {});
    static constexpr const char* kNames[] = {"obj", "dims"};
    static constexpr Signature kSignature{"as_buffer", kNames, 1};
    PyObject* values[2] = {};
    sort_arguments(kSignature, arguments, count, names, values, unexpected_keyword);
    if (values[0] == nullptr) raise_missing(kSignature);
    return import_buffer(values[0], values[1], {});
  });
}

py::object from_interface(py::handle descriptor, py::handle owner, py::handle sync,
                          py::handle device) {
  const ImportOptions options{.sync = to_flag(sync.ptr(), "sync")};
  PyObject* const kept = owner.is_none() ? nullptr : owner.ptr();
  return adopt(read_descriptor(descriptor.ptr(), kept, to_side(device.ptr())), nullptr, nullptr,
               options);
}

py::object get_origin(py::handle obj) {
  const std::optional<Extents> origin = declared_origin(obj.ptr());
  return origin ? from_integers(origin->span()) : share(Py_None);
}

// ---- The table. ----

template <class Function>
PyCFunction method(Function function) {
  return reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(function));
}

constexpr int kFast = METH_FASTCALL | METH_KEYWORDS;

PyMethodDef functions[] = {
    {"as_numpy", method(as_numpy), METH_O,
     "as_numpy(obj, /)\n--\n\n"
     "An ndarray over the memory of obj, whatever library made it; never a copy. Raises TypeError\n"
     "if obj offers no interface, GTNoSuchBufferError if the host cannot read its memory, and\n"
     "TypeError, ValueError or BufferError with a rule's id if what it says cannot be true."},
    {"as_buffer", method(as_buffer), kFast,
     "as_buffer(obj, *, dims=None)\n--\n\n"
     "A Buffer over the memory of obj, which it keeps alive; never a copy. dims overrides the "
     "names\n"
     "that obj declares. Errors as those of as_numpy; DeviceUnavailableError for memory of a "
     "device\n"
     "that is not there."},
    {nullptr, nullptr, 0, nullptr},
};

}  // namespace

void add_import_functions(PyObject* module) {
  check(PyModule_AddFunctions(module, functions));
  auto core = py::reinterpret_borrow<py::module_>(module);
  py::options options;
  options.disable_function_signatures();
  core.def("as_cupy", as_cupy, py::arg("obj"), py::arg("sync") = true,
           "as_cupy(obj, sync=True)\n--\n\n"
           "A cupy.ndarray over the memory of obj; never a copy. Work that is pending on it is "
           "ordered\nbefore CuPy's current stream, unless sync is False. Raises "
           "DeviceUnavailableError without\nCuPy or a CUDA device, GTNoSuchBufferError if obj is "
           "in host memory.")
      .def("from_interface", from_interface, py::arg("descriptor"), py::arg("owner") = py::none(),
           py::arg("sync") = true, py::kw_only(), py::arg("device") = py::ellipsis(),
           "from_interface(descriptor, owner=None, sync=True, *, device=...)\n--\n\n"
           "A Buffer over what a bare dict describes: an array interface, a CUDA array interface, "
           "or a\ndict of them under None and 'gpu'. owner is kept alive; without one the caller "
           "keeps the\nmemory. A single interface is CUDA's if it names a stream, unless device "
           "says None or 'gpu'.\nsync=False does not wait for that stream. Errors as those of "
           "as_buffer.")
      .def("get_origin", get_origin, py::arg("obj"), py::pos_only(),
           "get_origin(obj, /)\n--\n\n"
           "The default origin that obj declares (__gt_origin__, then default_origin), as a tuple "
           "of ints\nin the order I, J, K, 0, 1, ...; that of its Buffer for a plain array; else "
           "None.");
}

}  // namespace gridbuf::python
