module;

#include <Python.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"

module gridbuf.python.cupy;

import gridbuf.alloc.devices;
import gridbuf.alloc;
import gridbuf.base;
import gridbuf.layout;
import gridbuf.python.arguments;
import gridbuf.python.numpy;
import gridbuf.python.object;

namespace gridbuf::python {
namespace {

Ref attribute(PyObject* object, const char* name) {
  return Ref::steal(PyObject_GetAttrString(object, name));
}

/// The text of the exception that is set, which is cleared.
std::string take_error_text() {
  PyObject* type = nullptr;
  PyObject* value = nullptr;
  PyObject* traceback = nullptr;
  PyErr_Fetch(&type, &value, &traceback);
  const Ref held_type = Ref::steal_or_none(type);
  const Ref held_value = Ref::steal_or_none(value);
  const Ref held_traceback = Ref::steal_or_none(traceback);
  return held_value ? describe(held_value.get()) : "no reason given";
}

[[noreturn]] void raise_unavailable(std::string_view found, std::string_view advice) {
  raise(ErrorClass::kDeviceUnavailable,
        "a plain array on the GPU comes from CuPy's current allocator; looked for the package cupy "
        "and a CUDA device: " +
            std::string(found) + "; " + std::string(advice));
}

/// The package, with a device to use.
Ref load_cupy() {
  if (emulated_device_is_on()) {
    raise_unavailable("gridbuf's emulated device is switched on, of which CuPy knows nothing",
                      "use gridbuf.allocate(..., memory=\"device\"), or switch it off");
  }
  Ref cupy = Ref::steal_or_none(PyImport_ImportModule("cupy"));
  if (!cupy) {
    raise_unavailable(take_error_text(),
                      "install CuPy, use gridbuf.allocate(..., memory=\"device\"), or pass "
                      "device=None for host memory in the same layout");
  }
  const Ref cuda = attribute(cupy.get(), "cuda");
  const Ref runtime = attribute(cuda.get(), "runtime");
  const Ref count =
      Ref::steal_or_none(PyObject_CallMethod(runtime.get(), "getDeviceCount", nullptr));
  const long devices = count ? PyLong_AsLong(count.get()) : 0;
  if (devices > 0) return cupy;
  const std::string reason = PyErr_Occurred() != nullptr ? take_error_text() : "it counts 0";
  raise_unavailable("cupy is installed, but finds no device (" + reason + ")",
                    "pass device=None for host memory in the same layout");
}

/// Booleans, integers, floats up to 64 bits and complex numbers of them, in native order.
void check_dtype(const DTypeRecord& dtype) {
  constexpr std::string_view kCharacters = "?bhilqBHILQefdFD";
  const Ref character = attribute(dtype.numpy.get(), "char");
  const bool known = kCharacters.find(utf8(character.get())) != std::string_view::npos;
  if (known && dtype.type.is_native()) return;
  raise(ErrorClass::kType,
        Problem{"dtype", dtype.name, "one that CuPy has for a plain array on the GPU",
                "use gridbuf.allocate(..., memory=\"device\") for other dtypes"});
}

/// A cupy.cuda.MemoryPointer to where the plan's element (0, ..., 0) goes.
Ref allocate_placed(PyObject* cupy, const Layout& plan) {
  const Placement placement =
      value_of(place({.total_bytes = plan.total_bytes(),
                      .alignment_bytes = plan.alignment_bytes(),
                      .aligned_offset_bytes = plan.aligned_offset_bytes()}));
  const Ref cuda = attribute(cupy, "cuda");
  const Ref block = Ref::steal(
      PyObject_CallMethod(cuda.get(), "alloc", "L", static_cast<long long>(placement.block_bytes)));
  const Ref address = attribute(block.get(), "ptr");
  const auto start = static_cast<std::uintptr_t>(PyLong_AsUnsignedLongLong(address.get()));
  if (PyErr_Occurred() != nullptr) throw PythonError();
  auto* const plain = reinterpret_cast<std::byte*>(start);
  const Ref offset = Ref::steal(PyLong_FromLongLong(place_in(placement, plain) - plain));
  return Ref::steal(PyNumber_Add(block.get(), offset.get()));
}

}  // namespace

Ref make_cupy_array(const Layout& plan, const DTypeRecord& dtype, bool zeroed) {
  const Ref cupy = load_cupy();
  check_dtype(dtype);
  const Ref memory = allocate_placed(cupy.get(), plan);
  if (zeroed && plan.total_bytes() > 0) {
    Ref::steal(PyObject_CallMethod(memory.get(), "memset_async", "iL", 0,
                                   static_cast<long long>(plan.total_bytes())));
  }
  const Ref type = attribute(cupy.get(), "ndarray");
  const Ref shape = from_integers(plan.shape().span());
  const Ref strides = from_integers(plan.strides_bytes().span());
  const Ref arguments =
      Ref::steal(PyTuple_Pack(4, shape.get(), dtype.numpy.get(), memory.get(), strides.get()));
  return Ref::steal(PyObject_Call(type.get(), arguments.get(), nullptr));
}

void copy_into_cupy(PyObject* array, PyObject* value) {
  const Ref dtype = attribute(array, "dtype");
  const DTypePtr record = record_of(dtype.get());
  if (is_scalar(value)) {
    const Ref element = make_element(record->numpy.get(), value);
    const Ref number = Ref::steal(PyObject_CallMethod(element.get(), "item", nullptr));
    Ref::steal(PyObject_CallMethod(array, "fill", "O", number.get()));
    return;
  }
  const Ref host = as_ndarray(value);
  const Ref converted = Ref::steal(PyObject_CallMethod(host.get(), "astype", "O", dtype.get()));
  const Ref cupy = Ref::steal(PyImport_ImportModule("cupy"));
  const Ref device = Ref::steal(PyObject_CallMethod(cupy.get(), "asarray", "O", converted.get()));
  check(PyObject_SetItem(array, Py_Ellipsis, device.get()));
}

}  // namespace gridbuf::python
