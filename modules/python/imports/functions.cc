// The functions of the package that take arrays from anywhere.

module;

#include <Python.h>

#include <cstdint>
#include <optional>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

module gridbuf.python.imports;

import gridbuf.alloc.device;
import gridbuf.alloc.devices;
import gridbuf.alloc;
import gridbuf.base;
import gridbuf.interface.numpy;
import gridbuf.interface;
import gridbuf.layout;
import gridbuf.python.arguments;
import gridbuf.python.buffer;
import gridbuf.python.numpy;
import gridbuf.python.object;
import gridbuf.python.request;

namespace gridbuf::python {
namespace {

[[noreturn]] void raise_missing(const Signature& signature) {
  raise(ErrorClass::kType, std::string(signature.function) + "() needs " + signature.names[0] +
                               "; pass it as the first argument");
}

bool to_sync(PyObject* value) { return value == nullptr || to_flag(value, "sync"); }

// ---- CuPy. ----

Ref load_cupy() {
  if (emulated_device_is_on()) {
    raise(ErrorClass::kDeviceUnavailable,
          "CuPy arrays need a CUDA device, but the emulated device is switched on; use as_buffer");
  }
  Ref cupy = Ref::steal_or_none(PyImport_ImportModule("cupy"));
  if (cupy) return cupy;
  if (!take_error(PyExc_ImportError)) throw PythonError();
  raise(ErrorClass::kDeviceUnavailable,
        "CuPy arrays need the package cupy, which cannot be imported; install the CuPy of your "
        "CUDA version, or use as_buffer");
}

Ref member(const Ref& object, const char* name) {
  return Ref::steal(PyObject_GetAttrString(object.get(), name));
}

/// The handle of CuPy's current stream; its null stream is the legacy default one.
StreamHandle stream_of_cupy(const Ref& cuda) {
  const Ref stream = Ref::steal(PyObject_CallMethod(cuda.get(), "get_current_stream", nullptr));
  const auto handle = static_cast<StreamHandle>(to_integer(member(stream, "ptr").get(), "ptr"));
  return handle == 0 ? kLegacyDefaultStream : handle;
}

Ref cupy_view(const Ref& cupy, const Ref& buffer, bool sync) {
  const BufferState& state = state_of(buffer.get());
  const BufferDescriptor& memory = state.memory;
  if (memory.device.type == DeviceType::kHost) {
    raise(ErrorClass::kNoSuchBuffer,
          Problem{"the array's memory", to_string(memory.device), "reached by CUDA devices",
                  "copy it with buffer.copy(memory=\"device\"), or use as_numpy"});
  }
  const Ref cuda = member(cupy, "cuda");
  if (sync) {
    const auto own = static_cast<StreamHandle>(state.facts.stream == 0 ? kLegacyDefaultStream
                                                                       : state.facts.stream);
    check(value_of(device_driver())->order_after(own, stream_of_cupy(cuda)));
  }
  const checked::ByteHull hull = byte_hull(memory.view).value_or(checked::ByteHull{});
  std::byte* const lowest = memory.block + hull.lowest_bytes;
  const Ref unowned = Ref::steal(PyObject_CallMethod(
      cuda.get(), "UnownedMemory", "KLOi", reinterpret_cast<std::uintptr_t>(lowest),
      static_cast<long long>(hull.length_bytes()), buffer.get(), memory.device.id));
  const Ref pointer = Ref::steal(
      PyObject_CallMethod(cuda.get(), "MemoryPointer", "OL", unowned.get(),
                          static_cast<long long>(memory.view.offset_bytes - hull.lowest_bytes)));
  const Ref type = member(cupy, "ndarray");
  return Ref::steal(PyObject_CallFunction(type.get(), "OOOO",
                                          from_integers(memory.view.shape.span()).get(),
                                          dtype_of(buffer.get())->numpy.get(), pointer.get(),
                                          from_integers(memory.view.strides_bytes.span()).get()));
}

// ---- Bare descriptors. ----

/// Which array interface a dict is: what the caller says, else CUDA's if it names a stream.
std::optional<DeviceType> to_side(PyObject* device) {
  if (device == nullptr) return std::nullopt;
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
Ref declared(PyObject* object, AttributeName& name) {
  Ref value = optional_attribute(object, name);
  if (value && PyCallable_Check(value.get()) != 0) {
    return Ref::steal(PyObject_CallNoArgs(value.get()));
  }
  return value;
}

}  // namespace

std::optional<Extents> declared_origin(PyObject* object) {
  if (is_buffer(object)) return origin_of(state_of(object));
  if (!is_exact_ndarray(object)) {  // A plain ndarray has no attributes to look for.
    static AttributeName names[] = {AttributeName("__gt_origin__"),
                                    AttributeName("default_origin")};
    for (AttributeName& name : names) {
      const Ref value = declared(object, name);
      if (value && value.get() != Py_None) {
        return to_integers(value.get(), utf8(name.get()));
      }
    }
  }
  if (is_ndarray(object)) {
    PyObject* const base = fields_of(object).base;
    if (base != nullptr && is_buffer(base) && dims_behind(object)) return declared_origin(base);
  }
  return std::nullopt;
}

Ref make_cupy_view(const Ref& buffer, bool sync) { return cupy_view(load_cupy(), buffer, sync); }

PyObject* as_numpy(PyObject*, PyObject* object) {
  return guarded([&] {
    if (is_exact_ndarray(object)) return Ref::share(object);
    const Ref buffer =
        import_buffer(object, nullptr, {.use_names = false, .side = DeviceType::kHost});
    return ndarray_of(buffer.get());
  });
}

PyObject* as_cupy(PyObject*, PyObject* const* arguments, Py_ssize_t count, PyObject* names) {
  return guarded([&] {
    static constexpr const char* kNames[] = {"obj", "sync"};
    static constexpr Signature kSignature{"as_cupy", kNames, 2};
    PyObject* values[2] = {};
    sort_arguments(kSignature, arguments, count, names, values, unexpected_keyword);
    if (values[0] == nullptr) raise_missing(kSignature);
    const bool sync = to_sync(values[1]);
    const Ref cupy = load_cupy();
    const Ref type = member(cupy, "ndarray");
    if (Py_TYPE(values[0]) == reinterpret_cast<PyTypeObject*>(type.get())) {
      return Ref::share(values[0]);
    }
    return cupy_view(cupy,
                     import_buffer(values[0], nullptr,
                                   {.sync = sync, .use_names = false, .side = DeviceType::kCuda}),
                     sync);
  });
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

PyObject* from_interface(PyObject*, PyObject* const* arguments, Py_ssize_t count, PyObject* names) {
  return guarded([&] {
    static constexpr const char* kNames[] = {"descriptor", "owner", "sync", "device"};
    static constexpr Signature kSignature{"from_interface", kNames, 3};
    PyObject* values[4] = {};
    sort_arguments(kSignature, arguments, count, names, values, unexpected_keyword);
    if (values[0] == nullptr) raise_missing(kSignature);
    PyObject* const owner = values[1] == Py_None ? nullptr : values[1];
    const ImportOptions options{.sync = to_sync(values[2])};
    return adopt(read_descriptor(values[0], owner, to_side(values[3])), nullptr, nullptr, options);
  });
}

PyObject* get_origin(PyObject*, PyObject* object) {
  return guarded([&] {
    const std::optional<Extents> origin = declared_origin(object);
    return origin ? from_integers(origin->span()) : Ref::share(Py_None);
  });
}

// ---- The table. ----

namespace {

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
    {"as_cupy", method(as_cupy), kFast,
     "as_cupy(obj, sync=True)\n--\n\n"
     "A cupy.ndarray over the memory of obj; never a copy. Work that is pending on it is ordered\n"
     "before CuPy's current stream, unless sync is False. Raises DeviceUnavailableError without\n"
     "CuPy or a CUDA device, GTNoSuchBufferError if obj lies in host memory."},
    {"as_buffer", method(as_buffer), kFast,
     "as_buffer(obj, *, dims=None)\n--\n\n"
     "A Buffer over the memory of obj, which it keeps alive; never a copy. dims overrides the "
     "names\n"
     "that obj declares. Errors as those of as_numpy; DeviceUnavailableError for memory of a "
     "device\n"
     "that is not there."},
    {"from_interface", method(from_interface), kFast,
     "from_interface(descriptor, owner=None, sync=True, *, device=...)\n--\n\n"
     "A Buffer over what a bare dict describes: an array interface, a CUDA array interface, or a\n"
     "dict of them under None and 'gpu'. owner is kept alive; without one the caller keeps the\n"
     "memory. A single interface is CUDA's if it names a stream, unless device says None or "
     "'gpu'.\n"
     "sync=False does not wait for that stream. Errors as those of as_buffer."},
    {"get_origin", method(get_origin), METH_O,
     "get_origin(obj, /)\n--\n\n"
     "The default origin that obj declares (__gt_origin__, then default_origin), as a tuple of "
     "ints\n"
     "in the order I, J, K, 0, 1, ...; that of its Buffer for a plain array; else None."},
    {nullptr, nullptr, 0, nullptr},
};

}  // namespace

void add_import_functions(PyObject* module) { check(PyModule_AddFunctions(module, functions)); }

}  // namespace gridbuf::python
