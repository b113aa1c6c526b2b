// Views, copies and pickles.

module;

#include <pybind11/pybind11.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>

#include "absl/status/statusor.h"

module gridbuf.python;

namespace gridbuf::python {

py::object view_through(PyObject* source, const IndexMap& map, bool readonly) {
  const BufferObject& buffer = *object_of(source);
  return new_buffer(buffer.dtype, buffer.root ? buffer.root.ptr() : source, [&] {
    return readonly ? apply(map, buffer.array).as_readonly() : apply(map, buffer.array);
  });
}

py::object view_of(const BufferObject& buffer, const IndexMap& map) {
  return view_through(self_of(buffer), map);
}

py::object element_at(const BufferObject& buffer, const IndexMap& map) {
  const py::object view = view_of(buffer, map);
  const bool on_host = is_host_readable(buffer.array.memory().device.type);
  return ndarray_of(on_host ? view.ptr() : copy_of(view.ptr(), DeviceType::kHost).ptr());
}

namespace {

// ---- Copies and pickles. ----

/// The elements in row-major order, without padding and with zeros in their gaps: for pickles.
py::object element_bytes(PyObject* self) {
  const BufferDescriptor& memory = object_of(self)->array.memory();
  if (!is_host_readable(memory.device.type)) {
    return element_bytes(copy_of(self, DeviceType::kHost).ptr());
  }
  wait_for_host(*object_of(self));
  py::object bytes = steal(PyBytes_FromStringAndSize(nullptr, memory.nbytes()));
  const Layout dense = value_of(
      make_plan({.shape = memory.view.shape, .itemsize_bytes = memory.view.itemsize_bytes}));
  auto* const copied = reinterpret_cast<std::byte*>(PyBytes_AS_STRING(bytes.ptr()));
  const ElementParts* const parts = memory.dtype.parts();
  if (parts != nullptr) std::fill_n(copied, memory.nbytes(), std::byte{0});
  copy_memory(copied, dense.view(), memory.block, memory.view, parts);
  return bytes;
}

/// The elements for a pickle; from protocol 5 on without copying, where the memory allows it.
py::object pickled_elements(PyObject* self, std::int64_t protocol) {
  const BufferDescriptor& memory = object_of(self)->array.memory();
  const bool in_place = protocol >= 5 && is_host_readable(memory.device.type) &&
                        is_c_contiguous(memory.view) && memory.dtype.format() != nullptr &&
                        memory.dtype.parts() == nullptr;
  return in_place ? steal(PyPickleBuffer_FromObject(self)) : element_bytes(self);
}

}  // namespace

py::object readonly_view(PyObject* buffer) {
  return view_through(buffer, IndexMap(object_of(buffer)->array.shape()), /*readonly=*/true);
}

py::object reduced(PyObject* self, std::int64_t protocol) {
  const BufferObject& buffer = *object_of(self);
  const BufferDescriptor& memory = buffer.array.memory();
  const py::object arguments =
      py::make_tuple(pickled_elements(self, protocol), from_integers(memory.view.shape.span()),
                     buffer.dtype->numpy, make_text(memory_name(memory.device.type)),
                     memory.readonly, pickled_parameters(buffer.array.layout()));
  return pack(py::module_::import("gridbuf._pickles").attr("restore_buffer"), arguments);
}

py::object copy_of(PyObject* buffer, DeviceType kind) {
  const BufferObject& source = *object_of(buffer);
  const BufferDescriptor& memory = source.array.memory();
  const bool on_host = kind == DeviceType::kHost && memory.device.type == DeviceType::kHost;
  const auto copy = [&] { return source.array.copy(kind); };
  absl::StatusOr<Array> made =
      on_host && !is_long_copy(memory.view) ? copy() : run_without_gil(copy);
  if (!made.ok()) raise(made.status());
  return new_buffer(source.dtype, nullptr, [&] { return *std::move(made); });
}

void copy_buffer(PyObject* target, PyObject* source) {
  const Array& to = array_in(target);
  const Array& from = array_in(source);
  const bool on_host = to.memory().device.type == DeviceType::kHost &&
                       from.memory().device.type == DeviceType::kHost;
  const auto copy = [&] {
    if (to.memory().dtype == from.memory().dtype) return to.copy_from(from);
    BufferDescriptor same = from.memory();  // Records that are equal for NumPy.
    same.dtype = to.memory().dtype;
    return to.copy_from(Array(std::move(same), from.layout(), from.info()));
  };
  check(on_host && !is_long_copy(to.memory().view) ? copy() : run_without_gil(copy));
}

}  // namespace gridbuf::python
