module;

#include <Python.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"

module gridbuf.python.buffer;

import gridbuf.alloc;
import gridbuf.base;
import gridbuf.device.registry;
import gridbuf.layout;
import gridbuf.python.support;

namespace gridbuf::python {
namespace {

py::object attribute(PyObject* object, const char* name) {
  return steal(PyObject_GetAttrString(object, name));
}

/// The text of the exception that is set, which is cleared.
std::string take_error_text() {
  PyObject* type = nullptr;
  PyObject* value = nullptr;
  PyObject* traceback = nullptr;
  PyErr_Fetch(&type, &value, &traceback);
  const py::object held_type = steal_or_none(type);
  const py::object held_value = steal_or_none(value);
  const py::object held_traceback = steal_or_none(traceback);
  return held_value ? describe(held_value.ptr()) : "no reason given";
}

[[noreturn]] void raise_unavailable(std::string_view found, std::string_view advice) {
  raise(ErrorClass::kDeviceUnavailable,
        "a plain array on the GPU comes from CuPy's current allocator; looked for the package cupy "
        "and a CUDA device: " +
            std::string(found) + "; " + std::string(advice));
}

/// The package, with a device to use.
py::object load_cupy() {
  if (emulated_device_is_on()) {
    raise_unavailable("gridbuf's emulated device is switched on, of which CuPy knows nothing",
                      "use gridbuf.allocate(..., memory=\"device\"), or switch it off");
  }
  py::object cupy = steal_or_none(PyImport_ImportModule("cupy"));
  if (!cupy) {
    raise_unavailable(take_error_text(),
                      "install CuPy, use gridbuf.allocate(..., memory=\"device\"), or pass "
                      "device=None for host memory in the same layout");
  }
  const py::object cuda = attribute(cupy.ptr(), "cuda");
  const py::object runtime = attribute(cuda.ptr(), "runtime");
  const py::object count =
      steal_or_none(PyObject_CallMethod(runtime.ptr(), "getDeviceCount", nullptr));
  const long devices = count ? PyLong_AsLong(count.ptr()) : 0;
  if (devices > 0) return cupy;
  const std::string reason = PyErr_Occurred() != nullptr ? take_error_text() : "it counts 0";
  raise_unavailable("cupy is installed, but finds no device (" + reason + ")",
                    "pass device=None for host memory in the same layout");
}

/// Booleans, integers, floats up to 64 bits and complex numbers of them, in native order.
void check_dtype(const DTypeRecord& dtype) {
  constexpr std::string_view kCharacters = "?bhilqBHILQefdFD";
  const py::object character = attribute(dtype.numpy.ptr(), "char");
  const bool known = kCharacters.find(utf8(character.ptr())) != std::string_view::npos;
  if (known && dtype.type.is_native()) return;
  raise(ErrorClass::kType,
        Problem{"dtype", dtype.name, "one that CuPy has for a plain array on the GPU",
                "use gridbuf.allocate(..., memory=\"device\") for other dtypes"});
}

/// A cupy.cuda.MemoryPointer to where the plan's element (0, ..., 0) goes.
py::object allocate_placed(PyObject* cupy, const Layout& plan) {
  const Placement placement =
      value_of(place({.total_bytes = plan.total_bytes(),
                      .alignment_bytes = plan.alignment_bytes(),
                      .aligned_offset_bytes = plan.aligned_offset_bytes()}));
  const py::object cuda = attribute(cupy, "cuda");
  const py::object block = steal(
      PyObject_CallMethod(cuda.ptr(), "alloc", "L", static_cast<long long>(placement.block_bytes)));
  const py::object address = attribute(block.ptr(), "ptr");
  const auto start = static_cast<std::uintptr_t>(PyLong_AsUnsignedLongLong(address.ptr()));
  if (PyErr_Occurred() != nullptr) throw PythonError();
  auto* const plain = reinterpret_cast<std::byte*>(start);
  const py::object offset = steal(PyLong_FromLongLong(place_in(placement, plain) - plain));
  return steal(PyNumber_Add(block.ptr(), offset.ptr()));
}

}  // namespace

py::object make_cupy_array(const Layout& plan, const DTypeRecord& dtype, bool zeroed) {
  const py::object cupy = load_cupy();
  check_dtype(dtype);
  const py::object memory = allocate_placed(cupy.ptr(), plan);
  if (zeroed && plan.total_bytes() > 0) {
    steal(PyObject_CallMethod(memory.ptr(), "memset_async", "iL", 0,
                              static_cast<long long>(plan.total_bytes())));
  }
  const py::object type = attribute(cupy.ptr(), "ndarray");
  const py::object shape = from_integers(plan.shape().span());
  const py::object strides = from_integers(plan.strides_bytes().span());
  const py::object arguments =
      steal(PyTuple_Pack(4, shape.ptr(), dtype.numpy.ptr(), memory.ptr(), strides.ptr()));
  return steal(PyObject_Call(type.ptr(), arguments.ptr(), nullptr));
}

void copy_into_cupy(PyObject* array, PyObject* value) {
  const py::object dtype = attribute(array, "dtype");
  const DTypePtr record = record_of(dtype.ptr());
  if (is_scalar(value)) {
    const py::object element = make_element(record->numpy.ptr(), value);
    const py::object number = steal(PyObject_CallMethod(element.ptr(), "item", nullptr));
    steal(PyObject_CallMethod(array, "fill", "O", number.ptr()));
    return;
  }
  const py::object host = as_ndarray(value);
  const py::object converted = steal(PyObject_CallMethod(host.ptr(), "astype", "O", dtype.ptr()));
  const py::object cupy = steal(PyImport_ImportModule("cupy"));
  const py::object device = steal(PyObject_CallMethod(cupy.ptr(), "asarray", "O", converted.ptr()));
  check(PyObject_SetItem(array, Py_Ellipsis, device.ptr()));
}

}  // namespace gridbuf::python
