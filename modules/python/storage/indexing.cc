// Views by indexing and transposing; elements by their indices; assignment.

module;

#include <Python.h>

#include <algorithm>
#include <cstdint>
#include <limits>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "absl/status/statusor.h"

module gridbuf.python.storage;

import gridbuf.alloc;
import gridbuf.base;
import gridbuf.device;
import gridbuf.interface;
import gridbuf.layout;
import gridbuf.layout.view;
import gridbuf.python.buffer;
import gridbuf.python.support;
import gridbuf.storage;

namespace gridbuf::python::storages {
namespace {

// ---- Basic keys: integers, slices, None and `...`; views. ----

AttributeName interface_names[] = {
    AttributeName("__array_interface__"), AttributeName("__dlpack__"),
    AttributeName("__cuda_array_interface__"), AttributeName("__gt_data_interface__")};

/// Whether an object that can be an integer is an array as well: then it is a list of indices.
bool is_array_like(PyObject* object) {
  if (is_ndarray(object) || is_storage(object) || is_buffer(object)) return true;
  if (is_scalar(object)) return false;
  return std::any_of(
      std::begin(interface_names), std::end(interface_names),
      [object](AttributeName& name) { return bool(optional_attribute(object, name)); });
}

bool is_basic_item(PyObject* item) {
  if (PyLong_CheckExact(item) != 0 || PySlice_Check(item) != 0) return true;
  if (item == Py_None || item == Py_Ellipsis) return true;
  if (PyBool_Check(item) != 0 || PyIndex_Check(item) == 0) return false;
  // A bool of NumPy's selects or adds a dimension, as in NumPy.
  const std::string_view type = Py_TYPE(item)->tp_name;
  return !type.starts_with("numpy.bool") && !is_array_like(item);
}

bool is_basic(PyObject* key) {
  if (PyTuple_CheckExact(key) == 0) return is_basic_item(key);
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(key); ++i) {
    if (!is_basic_item(PyTuple_GET_ITEM(key, i))) return false;
  }
  return true;
}

py::object element_of(const StorageObject& object, const Storage& view) {
  const py::object everything = steal(PyTuple_New(0));
  return steal(PyObject_GetItem(host_elements(object, view).ptr(), everything.ptr()));
}

py::object subscript(const StorageObject& object, std::span<const SubscriptItem> items) {
  const Extents& shape = object.storage.shape();
  const absl::StatusOr<IndexMap> map = subscript_map(shape, items);
  if (!map.ok()) raise(map.status());
  const bool is_element = std::ssize(items) == shape.size() &&
                          std::all_of(items.begin(), items.end(), [](const SubscriptItem& item) {
                            return std::holds_alternative<std::int64_t>(item);
                          });
  return is_element ? element_of(object, object.storage.view(*map)) : make_view(object, *map);
}

// ---- All other keys: NumPy's business. ----

/// What NumPy can index with, in place of an object with an interface.
py::object plain_item(PyObject* item) {
  const bool is_numpys = is_basic_item(item) || PyList_Check(item) != 0 || is_scalar(item) ||
                         PyBool_Check(item) != 0 || PyTuple_Check(item) != 0;
  return is_numpys ? share(item) : readable_on_host(item);
}

py::object plain_key(PyObject* key) {
  if (PyTuple_Check(key) == 0) return plain_item(key);
  py::object plain = steal(PyTuple_New(PyTuple_GET_SIZE(key)));
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(key); ++i) {
    PyTuple_SET_ITEM(plain.ptr(), i, plain_item(PyTuple_GET_ITEM(key, i)).release().ptr());
  }
  return plain;
}

/// The selected elements, as an ndarray of its own.
py::object pick(const StorageObject& object, PyObject* key) {
  const py::object plain = plain_key(key);
  const py::object elements = host_elements(object, object.storage);
  py::object picked = steal(PyObject_GetItem(elements.ptr(), plain.ptr()));
  const bool is_view = is_ndarray(picked.ptr()) && fields_of(picked.ptr()).base != nullptr;
  if (!is_view) return picked;
  return steal(PyObject_CallMethod(picked.ptr(), "copy", nullptr));
}

/// elements[key] = value on the host; elements that it does not read are copied there and back.
void put(const StorageObject& object, PyObject* key, PyObject* value) {
  const Storage& storage = object.storage;
  const py::object plain = plain_key(key);
  const py::object source = readable_on_host(value);
  const Side side = reading_side(storage);
  const auto set = [&](const py::object& elements) {
    check(PyObject_SetItem(elements.ptr(), plain.ptr(), source.ptr()));
  };
  const py::object memory = own_buffer(storage, object.dtype, side);
  py::object copied;
  if (side == Side::kDevice) {
    up_to_date(storage, side);
    copied = copy_of(memory.ptr(), MemoryKind::kHost);
    set(ndarray_of(copied.ptr()));
  }
  Writing writing(object, storage, side, Coverage::kPart);
  if (side == Side::kDevice) {
    copy_buffer(memory.ptr(), copied.ptr());
  } else {
    set(own_ndarray(storage, object.dtype, /*readonly=*/false, memory.ptr()));
  }
  writing.done();
}

// ---- Transposing. ----

int to_axis(std::int64_t axis) {
  // What is outside int is outside every array as well.
  using Limits = std::numeric_limits<int>;
  return static_cast<int>(std::clamp<std::int64_t>(axis, Limits::min(), Limits::max()));
}

}  // namespace

py::object transposed(const StorageObject& object, PyObject* axes) {
  Axes order;
  const bool is_one = PyTuple_GET_SIZE(axes) == 1;
  PyObject* const given = is_one ? PyTuple_GET_ITEM(axes, 0) : axes;
  if (given != Py_None && (is_one || PyTuple_GET_SIZE(axes) > 0)) {
    const bool is_axis = is_one && !is_sequence(given);
    for (const std::int64_t axis : to_integers(is_axis ? axes : given, "axes")) {
      order.push_back(to_axis(axis));
    }
    const int ndim = object.storage.ndim();
    if (order.size() != ndim) {
      raise(ErrorClass::kValue,
            Problem{"number of axes", std::to_string(order.size()),
                    "the number of dimensions, " + std::to_string(ndim), "pass each axis once"});
    }
  }
  return make_view(object, value_of(transpose_map(object.storage.shape(), order)));
}

void check_writable(const StorageObject& object) {
  if (!object.storage.readonly()) return;
  raise(ErrorClass::kValue,
        "this storage is read-only, as the memory that it wraps is; assign to a copy()");
}

PyObject* subscript_slot(PyObject* self, PyObject* key) {
  return guarded([&] {
    const StorageObject& object = *object_of(self);
    if (!is_basic(key)) return pick(object, key);
    return subscript(object, to_subscript(key));
  });
}

int assign_subscript_slot(PyObject* self, PyObject* key, PyObject* value) {
  return guarded(-1, [&] {
    const StorageObject& object = *object_of(self);
    if (value == nullptr) {
      raise(ErrorClass::kValue, "elements of a storage cannot be deleted; assign to them");
    }
    check_writable(object);
    if (!is_basic(key)) {
      put(object, key, value);
      return 0;
    }
    const std::vector<SubscriptItem> items = to_subscript(key);
    const IndexMap map = value_of(subscript_map(object.storage.shape(), items));
    assign(object, object.storage.view(map), value);
    return 0;
  });
}

PyObject* item_slot(PyObject* self, Py_ssize_t position) {
  return guarded([&] {
    const StorageObject& object = *object_of(self);
    const Extents& shape = object.storage.shape();
    // Iteration ends with an IndexError, so it should be a cheap one.
    if (shape.empty() || position < 0 || position >= shape[0]) {
      PyErr_SetString(PyExc_IndexError, "index out of range");
      throw PythonError();
    }
    const SubscriptItem item = static_cast<std::int64_t>(position);
    return subscript(object, std::span(&item, 1));
  });
}

Py_ssize_t length_slot(PyObject* self) {
  const Extents& shape = object_of(self)->storage.shape();
  if (!shape.empty()) return shape[0];
  PyErr_SetString(PyExc_TypeError, "a 0-dimensional storage has no length; use size");
  return -1;
}

PyObject* iterate_slot(PyObject* self) {
  if (!object_of(self)->storage.shape().empty()) return PySeqIter_New(self);
  PyErr_SetString(PyExc_TypeError,
                  "a 0-dimensional storage cannot be iterated over; use storage[()]");
  return nullptr;
}

}  // namespace gridbuf::python::storages
