// Copies and pickles: the same elements and parameters in other memory.

module;

#include <Python.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

module gridbuf.python.buffer;

import gridbuf.alloc;
import gridbuf.array;
import gridbuf.base;
import gridbuf.device;
import gridbuf.interface;
import gridbuf.layout;
import gridbuf.python.support;

namespace gridbuf::python {
namespace {

/// The elements in row-major order, without padding: for pickles.
py::object element_bytes(PyObject* self) {
  const BufferDescriptor& memory = object_of(self)->array.memory;
  if (!is_host_readable(memory.device.type)) {
    return element_bytes(copy_of(self, MemoryKind::kHost).ptr());
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

py::object reduced(PyObject* self, std::int64_t protocol) {
  const BufferObject& buffer = *object_of(self);
  const Layout& own = buffer.array.layout;
  const py::object core = steal(PyImport_ImportModule("gridbuf._core"));
  const py::object restore = steal(PyObject_GetAttrString(core.ptr(), "_restore"));
  const py::object shape = from_integers(own.shape().span());
  const py::object layout = from_integers(own.layout().span());
  const py::object aligned_index = from_integers(own.aligned_index().span());
  const py::object dims = from_dims(own.dims());
  const py::object elements = pickled_elements(self, protocol);
  const py::object memory = make_text(to_string(buffer.array.kind()));
  return steal(Py_BuildValue(
      "(O(OOOLOOOOO))", restore.ptr(), shape.ptr(), buffer.dtype->numpy.ptr(), layout.ptr(),
      static_cast<long long>(own.alignment_bytes()), aligned_index.ptr(), dims.ptr(),
      buffer.array.memory.readonly ? Py_True : Py_False, elements.ptr(), memory.ptr()));
}

py::object copy_of(PyObject* buffer, MemoryKind kind) {
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
