// By pybind11: the attributes of a Buffer that are not hot.

module;

#include <pybind11/pybind11.h>

#include <algorithm>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>

#include "modules/python/support/attributes.h"
#include "modules/python/support/docstrings.h"

module gridbuf.python;

template <>
struct pybind11::detail::type_caster<gridbuf::python::BufferObject>
    : gridbuf::python::ObjectCaster<gridbuf::python::BufferObject, gridbuf::python::is_buffer> {
  static constexpr auto name = const_name("gridbuf.Buffer");
};

namespace gridbuf::python {
namespace {

template <auto read>
auto number(const BufferObject& buffer) {
  return (buffer.array.layout().*read)();
}
template <auto read>
py::object numbers(const BufferObject& buffer) {
  return from_integers((buffer.array.layout().*read)().span());
}

py::object dims(const BufferObject& buffer) { return from_dims(buffer.array.layout().dims()); }

py::object origin(const BufferObject& buffer) {
  return from_integers(origin_of(buffer.array).span());
}

py::object device(const BufferObject& buffer) {
  const DeviceType type = buffer.array.memory().device.type;
  const bool gpu = !is_host_readable(type) || type == DeviceType::kCudaManaged;
  return gpu ? make_text("gpu") : share(Py_None);
}

py::object stream(const BufferObject& buffer) {
  if (buffer.array.memory().device.type == DeviceType::kHost) return py::none();
  return py::int_(buffer.array.stream());
}

py::object base(const BufferObject& buffer) { return buffer.root ? buffer.root : py::none(); }

py::object plan(const BufferObject& buffer) {
  if (!has_plan(self_of(buffer))) return py::none();
  return make_plan_object(whole(buffer).array.layout());
}

// ---- Views. ----

std::string padding_text(const Layout& plan) {
  Extents padding(plan.ndim(), 0);
  if (plan.row_padding() != 0) padding[plan.contiguous_axis()] = plan.row_padding();
  return "padding=" + to_string(padding);
}

std::string text_of(const BufferObject& buffer) {
  const Layout& layout = buffer.array.layout();
  std::string text = "gridbuf.Buffer(shape=" + to_string(layout.shape());
  text += ", dtype=" + buffer.dtype->name;
  text += ", dims=" + std::string(utf8(steal(PyObject_Repr(from_dims(layout.dims()).ptr())).ptr()));
  text += ", layout=" + to_string(layout.layout_map()) + ", ";
  text += !buffer.root && has_plan(self_of(buffer))
              ? padding_text(layout)
              : "strides=" + to_string(layout.strides_bytes());
  text += ", alignment_size=" + std::to_string(layout.alignment_bytes());
  text += ", aligned_index=" + to_string(layout.aligned_index());
  text += ", memory=" + std::string(memory_name(buffer.array.memory().device.type));
  if (is_emulated(buffer)) text += ", emulated";
  if (buffer.array.memory().readonly) text += ", readonly=True";
  return text + (buffer.root ? ", view)" : ")");
}

py::object transposed(const BufferObject& buffer, const py::args& axes) {
  const Extents& shape = buffer.array.shape();
  return view_of(buffer,
                 value_of(transpose_map(shape, to_axes(axes, buffer.array.layout().dims()))));
}

py::object broadcast(const BufferObject& buffer, py::handle shape) {
  const Extents target = to_shape(shape.ptr(), buffer.dtype->name);
  const Layout& own = buffer.array.layout();
  return view_through(self_of(buffer),
                      value_of(broadcast_map(own.shape(), target, own.itemsize_bytes())),
                      /*readonly=*/true);
}

// ---- Copies and pickles. ----

py::object copy(const BufferObject& buffer, py::handle memory) {
  return copy_of(self_of(buffer),
                 to_memory_type(memory.ptr()).value_or(buffer.array.memory().device.type));
}

py::object to_array(const BufferObject& buffer, py::handle dtype, py::handle copy) {
  std::optional<bool> must_copy;
  if (!copy.is_none()) must_copy = to_flag(copy.ptr(), "copy");
  const py::object view = ndarray_of(self_of(buffer));
  const py::handle wanted = dtype.is_none() ? py::handle(buffer.dtype->numpy) : dtype;
  // astype answers with the array itself where nothing is to be converted.
  py::object result = view.attr("astype")(wanted, "K", "unsafe", true, must_copy == true);
  if (must_copy == false && !result.is(view)) {
    raise(ErrorClass::kValue,
          Problem{"copy", "False with dtype " + describe(wanted.ptr()),
                  "True or None where elements must be converted", "leave copy out"});
  }
  return result;
}

void refuse_assignment(const BufferObject&, const py::args&) {
  raise(ErrorClass::kType,
        "a Buffer does not support item assignment; write buffer.to_numpy()[...] = value, or "
        "gridbuf.copyto(buffer[...], value)");
}

void add_properties(Attributes& type) {
  type.get("strides", numbers<&Layout::strides_bytes>, doc("Buffer.strides"))
      .get(
          "nbytes", [](const BufferObject& buffer) { return buffer.array.memory().nbytes(); },
          doc("Buffer.nbytes"))
      .get(
          "size",
          [](const BufferObject& buffer) {
            return buffer.array.memory().nbytes() / buffer.array.layout().itemsize_bytes();
          },
          doc("Buffer.size"))
      .get("itemsize", number<&Layout::itemsize_bytes>, doc("Buffer.itemsize"))
      .get("dims", dims, doc("Buffer.dims"))
      .get("layout", numbers<&Layout::layout_map>, doc("Buffer.layout"))
      .get("aligned_index", numbers<&Layout::aligned_index>, doc("Buffer.aligned_index"))
      .get("alignment_size", number<&Layout::alignment_bytes>, doc("Buffer.alignment_size"))
      .get(
          "memory",
          [](const BufferObject& buffer) {
            return make_text(memory_name(buffer.array.memory().device.type));
          },
          doc("Buffer.memory"))
      .get("device", device, doc("Buffer.device"))
      .get("stream", stream, doc("Buffer.stream"))
      .get(
          "readonly", [](const BufferObject& buffer) { return buffer.array.memory().readonly; },
          doc("Buffer.readonly"))
      .get("base", base, doc("Buffer.base"))
      .get("plan", plan, doc("Buffer.plan"))
      .get(
          "T", [](const BufferObject& buffer) { return transposed(buffer, py::args()); },
          doc("Buffer.T"))
      .get("__gt_dims__", dims, doc("Buffer.__gt_dims__"))
      .get("__gt_origin__", origin, doc("Buffer.__gt_origin__"))
      .get("default_origin", origin, doc("Buffer.default_origin"))
      .get("__array_interface__", make_array_interface, doc("Buffer.__array_interface__"))
      .get("__array_struct__", make_array_struct, doc("Buffer.__array_struct__"))
      .get("__cuda_array_interface__", make_cuda_array_interface,
           doc("Buffer.__cuda_array_interface__"))
      .get("__gt_data_interface__", make_data_interface, doc("Buffer.__gt_data_interface__"));
}

void add_methods(Attributes& type) {
  type.def("__repr__", text_of)
      .def(
          "to_numpy", [](const BufferObject& buffer) { return ndarray_of(self_of(buffer)); },
          doc("Buffer.to_numpy"))
      .def("transpose", transposed, doc("Buffer.transpose"))
      .def("broadcast_to", broadcast, py::arg("shape"), py::pos_only(), doc("Buffer.broadcast_to"))
      .def(
          "toreadonly", [](const BufferObject& buffer) { return readonly_view(self_of(buffer)); },
          doc("Buffer.toreadonly"))
      .def("copy", copy, py::arg("memory") = py::none(), doc("Buffer.copy"))
      .def(
          "synchronize", [](const BufferObject& buffer) { wait_for_host(buffer); },
          doc("Buffer.synchronize"))
      .def(
          "__copy__", [](const BufferObject& buffer) { return copy(buffer, py::none()); },
          doc("Buffer.__copy__"))
      .def(
          "__deepcopy__",
          [](const BufferObject& buffer, py::handle) { return copy(buffer, py::none()); },
          py::arg("memo"), py::pos_only(), doc("Buffer.__deepcopy__"))
      .def(
          "__reduce_ex__",
          [](const BufferObject& buffer, py::handle protocol) {
            return reduced(self_of(buffer), to_integer(protocol.ptr(), "protocol"));
          },
          py::arg("protocol"), py::pos_only(), doc("Buffer.__reduce_ex__"))
      .def("__array__", to_array, py::arg("dtype") = py::none(), py::arg("copy") = py::none(),
           doc("Buffer.__array__"))
      .def("__setitem__", refuse_assignment)
      .def("__delitem__", refuse_assignment);
}

}  // namespace

void add_buffer_attributes(PyObject* type) {
  py::options options;
  options.disable_function_signatures();
  Attributes attributes(type);
  add_properties(attributes);
  add_methods(attributes);
}

}  // namespace gridbuf::python
