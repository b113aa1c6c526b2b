// Views: indexing, transposing, broadcasting.

module;

#include <Python.h>

#include <algorithm>
#include <cstdint>
#include <limits>
#include <span>
#include <variant>
#include <vector>

#include "absl/status/statusor.h"

module gridbuf.python.buffer;

import gridbuf.alloc;
import gridbuf.array;
import gridbuf.base;
import gridbuf.device;
import gridbuf.interface;
import gridbuf.layout;
import gridbuf.layout.view;
import gridbuf.python.support;

namespace gridbuf::python {
namespace {

/// A view of `source` through `map`: memory, names and aligned index follow.
py::object view_through(PyObject* source, const IndexMap& map, bool readonly = false) {
  const BufferObject& buffer = *object_of(source);
  const Layout seen = apply(map, buffer.array.layout);
  return new_buffer(buffer.dtype, buffer.root == nullptr ? source : buffer.root, {},
                    [&]() noexcept -> Array {
                      const BufferDescriptor& memory = buffer.array.memory;
                      return {.memory = {.block = memory.block,
                                         .view = seen.view(),
                                         .dtype = memory.dtype,
                                         .readonly = memory.readonly || readonly,
                                         .device = memory.device,
                                         .owner = memory.owner},
                              .layout = seen};
                    });
}

const Extents& shape_of(PyObject* buffer) { return object_of(buffer)->array.shape(); }

bool fixes_all_dimensions(std::span<const SubscriptItem> items, int ndim) {
  return items.size() == static_cast<std::size_t>(ndim) &&
         std::all_of(items.begin(), items.end(), [](const SubscriptItem& item) {
           return std::holds_alternative<std::int64_t>(item);
         });
}

py::object subscript(PyObject* self, std::span<const SubscriptItem> items) {
  const Extents shape = shape_of(self);
  py::object view = view_through(self, value_of(subscript_map(shape, items)));
  if (!fixes_all_dimensions(items, shape.size())) return view;
  // An element of the device comes to the host, as NumPy's scalars are of the host.
  const bool on_host = is_host_readable(object_of(self)->array.memory.device.type);
  if (!on_host) view = copy_of(view.ptr(), MemoryKind::kHost);
  const py::object element = ndarray_of(view.ptr());
  const py::object everything = steal(PyTuple_New(0));
  return steal(PyObject_GetItem(element.ptr(), everything.ptr()));
}

int to_axis(std::int64_t axis) {
  // What is outside int is outside every array as well.
  return static_cast<int>(std::clamp<std::int64_t>(axis, std::numeric_limits<int>::min(),
                                                   std::numeric_limits<int>::max()));
}

/// The axes of transpose(*axes): none, None, one sequence, or integers.
Axes to_axes(PyObject* const* arguments, Py_ssize_t count) {
  Axes axes;
  if (count == 0 || (count == 1 && arguments[0] == Py_None)) return axes;
  if (count == 1 && is_sequence(arguments[0])) {
    for (const std::int64_t axis : to_integers(arguments[0], "axes")) axes.push_back(to_axis(axis));
    return axes;
  }
  if (count > kMaxNdim) {
    raise(ErrorClass::kValue, Problem{"number of axes", std::to_string(count),
                                      "the number of dimensions", "pass each axis once"});
  }
  for (Py_ssize_t i = 0; i < count; ++i) axes.push_back(to_axis(to_integer(arguments[i], "axes")));
  return axes;
}

py::object transposed(PyObject* self, PyObject* const* arguments, Py_ssize_t count) {
  const Axes axes = to_axes(arguments, count);
  const bool all_given = count > 0 && arguments[0] != Py_None;
  if (all_given && axes.size() != shape_of(self).size()) {
    raise(ErrorClass::kValue,
          Problem{"number of axes", std::to_string(axes.size()),
                  "the number of dimensions, " + std::to_string(shape_of(self).size()),
                  "pass each axis once"});
  }
  return view_through(self, value_of(transpose_map(shape_of(self), axes)));
}

}  // namespace

PyObject* subscript_slot(PyObject* self, PyObject* key) {
  return guarded([&] { return subscript(self, to_subscript(key)); });
}

PyObject* item_slot(PyObject* self, Py_ssize_t position) {
  return guarded([&] {
    const Extents& shape = shape_of(self);
    if (shape.empty()) {
      raise(ErrorClass::kType, "a 0-dimensional Buffer cannot be iterated over; use buffer[()]");
    }
    // Iteration ends with an IndexError, so it should be a cheap one.
    if (position < 0 || position >= shape[0]) {
      PyErr_SetString(PyExc_IndexError, "index out of range");
      throw PythonError();
    }
    const SubscriptItem item = static_cast<std::int64_t>(position);
    return subscript(self, std::span(&item, 1));
  });
}

Py_ssize_t length_slot(PyObject* self) {
  const Extents& shape = shape_of(self);
  if (!shape.empty()) return shape[0];
  PyErr_SetString(PyExc_TypeError, "a 0-dimensional Buffer has no length; use size");
  return -1;
}

PyObject* transposed_getter(PyObject* self, void*) {
  return guarded([&] { return transposed(self, nullptr, 0); });
}

PyObject* transpose_method(PyObject* self, PyObject* const* arguments, Py_ssize_t count) {
  return guarded([&] { return transposed(self, arguments, count); });
}

PyObject* broadcast_to_method(PyObject* self, PyObject* shape) {
  return guarded([&] {
    const BufferObject& buffer = *object_of(self);
    const Extents target = to_shape(shape, buffer.dtype->name);
    return view_through(
        self,
        value_of(broadcast_map(shape_of(self), target, buffer.array.memory.view.itemsize_bytes)),
        /*readonly=*/true);
  });
}

py::object readonly_view(PyObject* buffer) {
  return view_through(buffer, IndexMap(shape_of(buffer)), /*readonly=*/true);
}

PyObject* to_readonly_method(PyObject* self, PyObject*) {
  return guarded([&] { return readonly_view(self); });
}

}  // namespace gridbuf::python
