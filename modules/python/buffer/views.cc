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

py::object view_through(PyObject* source, const IndexMap& map, bool readonly) {
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

namespace {

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

py::object readonly_view(PyObject* buffer) {
  return view_through(buffer, IndexMap(shape_of(buffer)), /*readonly=*/true);
}

}  // namespace gridbuf::python
