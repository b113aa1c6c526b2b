// Views, copies and pickles.

module;

#include <pybind11/pybind11.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <variant>

module gridbuf.python.buffer;

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
  if (!on_host) view = copy_of(view.ptr(), DeviceType::kHost);
  const py::object element = ndarray_of(view.ptr());
  const py::object everything = steal(PyTuple_New(0));
  return steal(PyObject_GetItem(element.ptr(), everything.ptr()));
}

// ---- Copies and pickles. ----

/// The elements in row-major order, without padding: for pickles.
py::object element_bytes(PyObject* self) {
  const BufferDescriptor& memory = object_of(self)->array.memory;
  if (!is_host_readable(memory.device.type)) {
    return element_bytes(copy_of(self, DeviceType::kHost).ptr());
  }
  wait_for_host(*object_of(self));
  py::object bytes = steal(PyBytes_FromStringAndSize(nullptr, memory.nbytes()));
  const Layout dense = value_of(
      make_plan({.shape = memory.view.shape, .itemsize_bytes = memory.view.itemsize_bytes}));
  copy_memory(reinterpret_cast<std::byte*>(PyBytes_AS_STRING(bytes.ptr())), dense.view(),
              memory.block, memory.view);
  return bytes;
}

/// The elements for a pickle; from protocol 5 on without copying, where the memory allows it.
py::object pickled_elements(PyObject* self, std::int64_t protocol) {
  const BufferDescriptor& memory = object_of(self)->array.memory;
  const bool in_place = protocol >= 5 && is_host_readable(memory.device.type) &&
                        is_c_contiguous(memory.view) && memory.dtype.format() != nullptr;
  return in_place ? steal(PyPickleBuffer_FromObject(self)) : element_bytes(self);
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

py::object reduced(PyObject* self, std::int64_t protocol) {
  const BufferObject& buffer = *object_of(self);
  const Layout& own = buffer.array.layout;
  const py::object arguments = pack(
      from_integers(own.shape().span()), buffer.dtype->numpy, from_integers(own.layout().span()),
      py::int_(own.alignment_bytes()), from_integers(own.aligned_index().span()),
      from_dims(own.dims()), py::bool_(buffer.array.memory.readonly),
      pickled_elements(self, protocol), make_text(memory_name(buffer.array.memory.device.type)));
  return pack(py::module_::import("gridbuf._core").attr("_restore"), arguments);
}

py::object copy_of(PyObject* buffer, DeviceType kind) {
  const BufferObject& source = *object_of(buffer);
  LayoutRequest request = source.array.request();
  request.dtype_name = source.dtype->name;
  const Layout layout = value_of(make_plan(request));
  py::object copied = allocate_buffer(layout, source.dtype,
                                      {.memory = kind, .zeroed_padding = has_padding(layout)});
  copy_buffer(copied.ptr(), buffer);
  return copied;
}

void copy_buffer(PyObject* target, PyObject* source) {
  const BufferObject& to = *object_of(target);
  const BufferObject& from = *object_of(source);
  const BufferDescriptor& target_memory = to.array.memory;
  const BufferDescriptor& source_memory = from.array.memory;
  if (!is_host_readable(target_memory.device.type) ||
      !is_host_readable(source_memory.device.type)) {
    return copy_on_device(to, from);
  }
  wait_for_host(from);
  wait_for_host(to);
  copy_memory(target_memory.block, target_memory.view, source_memory.block, source_memory.view);
}

}  // namespace gridbuf::python
