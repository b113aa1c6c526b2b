// Functions of Python as kernels of the emulated device, and the memory of a storage for other
// libraries.

module;

#include <pybind11/pybind11.h>

#include <cstddef>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

module gridbuf.python;

namespace gridbuf::python::storages {
namespace {

/// One array as a kernel sees it: the same shape and strides where the device's bytes are. An empty
/// array begins at other memory, because NumPy may read its first byte.
py::object array_in_kernel(PyObject* array, KernelMemory& memory) {
  if (!is_ndarray(array)) return share(array);
  const NdarrayFields fields = fields_of(array);
  const DTypePtr dtype = record_of(fields.dtype);
  StridedView view{.shape = fields.shape,
                   .strides_bytes = fields.strides_bytes,
                   .itemsize_bytes = dtype->type.itemsize_bytes()};
  const auto hull = byte_hull(view);
  if (!hull || !emulated_driver().owns(fields.first_element)) return share(array);
  if (is_empty(view.shape)) {
    alignas(64) static constinit std::byte nothing[64] = {};
    return make_ndarray(*dtype, view, nothing, fields.readonly, array);
  }
  std::byte* const lowest =
      value_of(memory.at(fields.first_element + hull->lowest_bytes, hull->length_bytes()));
  return make_ndarray(*dtype, view, lowest - hull->lowest_bytes, fields.readonly, array);
}

}  // namespace

py::object own_memory(const StorageObject& object) {
  const Storage& storage = object.storage();
  if (storage.kind() == StorageKind::kSoftwareManaged) return share(object.self());
  const Side side = reading_side(storage);
  up_to_date(storage, side);
  py::object buffer = own_buffer(storage, object.dtype, side);
  if (side == Side::kDevice) return buffer;
  return own_ndarray(storage, object.dtype, /*readonly=*/false, buffer.ptr());
}

/// function(*arrays) as a kernel of the emulated device, whose arrays (of _read_array and
/// _write_array) it gets where a kernel can touch them. Waits; returns or raises what it did.
py::object run_kernel(const py::args& arguments) {
  const std::span<PyObject* const> given(&PyTuple_GET_ITEM(arguments.ptr(), 0), arguments.size());
  if (given.empty() || PyCallable_Check(given[0]) == 0) {
    raise(ErrorClass::kType, "_run_kernel() takes a callable and its arrays");
  }
  if (!emulated_device_is_on()) {
    raise(ErrorClass::kDeviceUnavailable,
          "_run_kernel() is for the emulated device, which is switched off");
  }
  py::object value;
  std::optional<py::error_already_set> error;
  // Runs on whichever thread waits for the stream, which must not have Python's lock.
  const auto kernel = [&](KernelMemory& memory) {
    const py::gil_scoped_acquire_simple locked;
    value = steal_or_none(guarded([&] {
      std::vector<py::object> held;
      std::vector<PyObject*> arrays;
      for (PyObject* const array : given.subspan(1)) {
        held.push_back(array_in_kernel(array, memory));
        arrays.push_back(held.back().ptr());
      }
      return steal(PyObject_Vectorcall(given[0], arrays.data(), arrays.size(), nullptr));
    }));
    if (!value) error.emplace();  // Takes the exception that is set.
    return absl::OkStatus();
  };
  const absl::Status status =
      run_without_gil([&] { return emulated_driver().run(current_stream(), kernel); });
  if (error) throw py::error_already_set(*error);
  check(status);
  return value;
}

}  // namespace gridbuf::python::storages
