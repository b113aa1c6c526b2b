// The arrays of one side that the functions of gridbuf.storage, written in Python, compute on
// (promise `ufunc`).

module;

#include <pybind11/gil_simple.h>
#include <pybind11/pytypes.h>

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

module gridbuf.python;

namespace gridbuf::python::storages {
namespace {

/// The key of a side in Python: "host" or "device".
Side to_side(PyObject* object) {
  if (PyUnicode_Check(object) != 0) {
    if (utf8(object) == "host") return Side::kHost;
    if (utf8(object) == "device") return Side::kDevice;
  }
  raise(ErrorClass::kValue,
        Problem{"side", describe(object), "\"host\" or \"device\"", "pass one of the two"});
}

/// The storage with the dimensions of `dims`, which include all of its dimensions; None: the
/// storage itself.
Storage seen_as(const Storage& storage, PyObject* dims) {
  if (dims == Py_None) return storage;
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
  const BufferDescriptor& memory = array_in(buffer.ptr()).memory();
  if (side == Side::kHost || seen.is_emulated()) {
    return make_ndarray(*object.dtype, memory.view, memory.first_element(),
                        readonly || memory.readonly, buffer.ptr());
  }
  return make_cupy_view(buffer, /*sync=*/true);
}

void check_count(Py_ssize_t count, Py_ssize_t most) {
  if (count >= 1 && count <= most) return;
  raise(ErrorClass::kType,
        "the arguments are a side and up to " + std::to_string(most - 1) + " others");
}

}  // namespace

/// _read_array(side, dims=None, /): a read-only array of a side, up to date; of the axes of dims.
PyObject* read_array_method(PyObject* self, PyObject* const* arguments, Py_ssize_t count) {
  return guarded([&] {
    check_count(count, 2);
    const StorageObject& object = *object_of(self);
    const Side side = to_side(arguments[0]);
    const Storage seen = seen_as(object.storage(), count > 1 ? arguments[1] : Py_None);
    up_to_date(object.storage(), side);
    return array_of(object, seen, side, /*readonly=*/true);
  });
}

/// _write_array(side, dims=None, whole=True, /): a writable array of a side, which is marked.
PyObject* write_array_method(PyObject* self, PyObject* const* arguments, Py_ssize_t count) {
  return guarded([&] {
    check_count(count, 3);
    const StorageObject& object = *object_of(self);
    const Storage& storage = object.storage();
    const Side side = to_side(arguments[0]);
    const bool whole = count < 3 || to_flag(arguments[2], "whole");
    if (storage.readonly()) raise(ErrorClass::kValue, "output storage is read-only");
    const Storage seen = seen_as(storage, count > 1 ? arguments[1] : Py_None);
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
    const Side side = to_side(side_name);
    storage_of(self).end_write(side);
    touch_storage(self, storage_of(self).shape(), side);
    return share(Py_None);
  });
}

}  // namespace gridbuf::python::storages
