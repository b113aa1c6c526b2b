// What the array functions of gridbuf.storage, written in Python, compute on: arrays of one side.

module;

#include <Python.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

module gridbuf.python.storage;

import gridbuf.alloc;
import gridbuf.array;
import gridbuf.base;
import gridbuf.device.emulated;
import gridbuf.device.registry;
import gridbuf.device;
import gridbuf.interface;
import gridbuf.layout.view;
import gridbuf.layout;
import gridbuf.python.buffer;
import gridbuf.python.support;
import gridbuf.storage;

namespace gridbuf::python::storages {
namespace {

/// The storage with the dimensions of `dims`, which has all of its own; null and None: as it is.
Storage seen_as(const Storage& storage, PyObject* dims) {
  if (dims == nullptr || dims == Py_None) return storage;
  const Py_ssize_t count = PySequence_Size(dims);
  if (count < 0) throw PythonError();
  const Dims target = to_dims(dims, static_cast<int>(count));
  return storage.view(
      value_of(named_map({.dims = storage.dims(), .shape = storage.shape()}, target)));
}

/// An array of a side, not watched: NumPy's, or CuPy's on a real device. Of the emulated device it
/// is an ndarray that only a kernel can touch.
py::object array_of(const StorageObject& object, const Storage& seen, Side side, bool readonly) {
  const py::object buffer = own_buffer(seen, object.dtype, side);
  const BufferDescriptor& memory = array_in(buffer.ptr()).memory;
  if (side == Side::kHost || seen.is_emulated()) {
    return make_ndarray(*object.dtype, memory.view, memory.first_element(),
                        readonly || memory.readonly, buffer.ptr());
  }
  return make_cupy_view(buffer, /*sync=*/true);
}

}  // namespace

PyObject* read_array_method(PyObject* self, PyObject* const* arguments, Py_ssize_t count,
                            PyObject* names) {
  return guarded([&] {
    static constexpr const char* kNames[] = {"side", "dims"};
    static constexpr Signature kSignature{"_read_array", kNames, 2};
    PyObject* values[2] = {};
    sort_arguments(kSignature, arguments, count, names, values, unexpected_keyword);
    if (values[0] == nullptr) raise(ErrorClass::kType, "_read_array() needs a side");
    const StorageObject& object = *object_of(self);
    const Side side = to_side(values[0]);
    const Storage seen = seen_as(object.storage, values[1]);
    up_to_date(object.storage, side);
    return array_of(object, seen, side, /*readonly=*/true);
  });
}

PyObject* write_array_method(PyObject* self, PyObject* const* arguments, Py_ssize_t count,
                             PyObject* names) {
  return guarded([&] {
    static constexpr const char* kNames[] = {"side", "dims", "whole"};
    static constexpr Signature kSignature{"_write_array", kNames, 2};
    PyObject* values[3] = {};
    sort_arguments(kSignature, arguments, count, names, values, unexpected_keyword);
    if (values[0] == nullptr) raise(ErrorClass::kType, "_write_array() needs a side");
    const StorageObject& object = *object_of(self);
    const Side side = to_side(values[0]);
    const bool whole = values[2] == nullptr || to_flag(values[2], "whole");
    if (object.storage.readonly()) raise(ErrorClass::kValue, "output storage is read-only");
    const Storage seen = seen_as(object.storage, values[1]);
    const Storage& storage = object.storage;
    check(run_unlocked(storage, [&] {
      return storage.begin_write(side, whole ? Coverage::kAll : Coverage::kPart);
    }));
    try {
      return array_of(object, seen, side, /*readonly=*/false);
    } catch (...) {
      storage.end_write(side);
      throw;
    }
  });
}

PyObject* written_method(PyObject* self, PyObject* side_name) {
  return guarded([&] {
    const StorageObject& object = *object_of(self);
    const Side side = to_side(side_name);
    object.storage.end_write(side);
    touch(object, side);
    return share(Py_None);
  });
}

PyObject* own_memory_method(PyObject* self, PyObject*) {
  return guarded([&] {
    const StorageObject& object = *object_of(self);
    const Storage& storage = object.storage;
    if (storage.kind() == StorageKind::kSoftwareManaged) return share(self);
    const Side side = reading_side(storage);
    up_to_date(storage, side);
    const py::object buffer = own_buffer(storage, object.dtype, side);
    if (side == Side::kDevice) return share(buffer.ptr());
    return own_ndarray(storage, object.dtype, /*readonly=*/false, buffer.ptr());
  });
}

PyObject* current_sides_method(PyObject* self, PyObject*) {
  return guarded([&] {
    const Storage& storage = object_of(self)->storage;
    py::object sides = steal(PyList_New(0));
    for (const Side side : {Side::kHost, Side::kDevice}) {
      if (!storage.has(side) || !storage.is_current(side)) continue;
      check(PyList_Append(sides.ptr(), make_text(to_string(side)).ptr()));
    }
    return steal(PyList_AsTuple(sides.ptr()));
  });
}

// ---- Kernels. ----

namespace {

/// One array as a kernel sees it: the same shape and strides where the device's bytes are.
py::object array_in_kernel(PyObject* array, KernelMemory& memory) {
  if (!is_ndarray(array)) return share(array);
  const NdarrayFields fields = fields_of(array);
  const DTypePtr dtype = record_of(fields.dtype);
  StridedView view{.shape = fields.shape,
                   .strides_bytes = fields.strides_bytes,
                   .itemsize_bytes = dtype->type.itemsize_bytes()};
  const auto hull = byte_hull(view);
  if (!hull || is_empty(view.shape) || !emulated_driver().owns(fields.first_element)) {
    return share(array);
  }
  std::byte* const lowest =
      value_of(memory.at(fields.first_element + hull->lowest_bytes, hull->length_bytes()));
  return make_ndarray(*dtype, view, lowest - hull->lowest_bytes, fields.readonly, array);
}

/// What a kernel in Python did: its value, or its exception.
struct Outcome {
  PyObject* value = nullptr;
  PyObject* error_type = nullptr;
  PyObject* error = nullptr;
  PyObject* traceback = nullptr;
};

/// Runs on whichever thread waits for the stream, which must not have Python's lock.
void run_with_gil(KernelMemory& memory, PyObject* const* arguments, Py_ssize_t count,
                  Outcome& outcome) {
  const PyGILState_STATE state = PyGILState_Ensure();
  outcome.value = guarded([&] {
    std::vector<py::object> held;
    std::vector<PyObject*> arrays;
    for (Py_ssize_t i = 1; i < count; ++i) {
      held.push_back(array_in_kernel(arguments[i], memory));
      arrays.push_back(held.back().ptr());
    }
    return steal(PyObject_Vectorcall(arguments[0], arrays.data(), arrays.size(), nullptr));
  });
  if (outcome.value == nullptr) {
    PyErr_Fetch(&outcome.error_type, &outcome.error, &outcome.traceback);
  }
  PyGILState_Release(state);
}

}  // namespace

PyObject* run_kernel(PyObject*, PyObject* const* arguments, Py_ssize_t count) {
  return guarded([&] {
    if (count < 1 || PyCallable_Check(arguments[0]) == 0) {
      raise(ErrorClass::kType, "_run_kernel() takes a callable and its arrays");
    }
    if (!emulated_device_is_on()) {
      raise(ErrorClass::kDeviceUnavailable,
            "_run_kernel() is for the emulated device, which is switched off");
    }
    Outcome outcome;
    const StreamHandle stream = current_stream();
    const absl::Status status = run_without_gil([&]() -> absl::Status {
      EmulatedDriver& driver = emulated_driver();
      // Everything that the kernel refers to lives until this function returns, as it waits.
      absl::Status launched = driver.launch(stream, [&](KernelMemory& memory) {
        run_with_gil(memory, arguments, count, outcome);
        return absl::OkStatus();
      });
      return launched.ok() ? driver.synchronize(stream) : launched;
    });
    const py::object value = steal_or_none(outcome.value);
    if (outcome.error_type != nullptr) {
      PyErr_Restore(outcome.error_type, outcome.error, outcome.traceback);
      throw PythonError();
    }
    check(status);
    return share(value.ptr());
  });
}

}  // namespace gridbuf::python::storages
