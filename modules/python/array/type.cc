// The type `gridbuf.Buffer`: lifetime, attributes, buffer requests, indexing, views, copies,
// pickles.

module;

#include <pybind11/pybind11.h>
#include <structmember.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <type_traits>
#include <utility>
#include <variant>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "modules/python/arguments/attributes.h"
#include "modules/python/arguments/docstrings.h"

module gridbuf.python;

namespace gridbuf::python {
namespace {

PyTypeObject* the_type = nullptr;  // Made once, kept for good.

using Type = ArrayType<BufferObject>;

PyGetSetDef getters[] = {
    {"shape", Type::get_shape, nullptr, doc("Buffer.shape"), nullptr},
    {"ndim", Type::get_ndim, nullptr, doc("Buffer.ndim"), nullptr},
    {"dtype", Type::get_dtype, nullptr, doc("Buffer.dtype"), nullptr},
    {nullptr, nullptr, nullptr, nullptr, nullptr},
};

PyMethodDef methods[] = {
    {"__dlpack__", method(dlpack_method), METH_FASTCALL | METH_KEYWORDS, doc("Buffer.__dlpack__")},
    {"__dlpack_device__", method(dlpack_device_method), METH_NOARGS,
     doc("Buffer.__dlpack_device__")},
    {nullptr, nullptr, 0, nullptr},
};

PyMemberDef members[] = {
    {"__weaklistoffset__", T_PYSSIZET, offsetof(ArrayHead, weak_references), READONLY, nullptr},
    {nullptr, 0, 0, 0, nullptr},
};

// ---- Indexing. ----

PyObject* subscript_slot(PyObject* self, PyObject* key) {
  return guarded([&] {
    const BufferObject& buffer = *object_of(self);
    return Type::subscript(buffer, to_subscript(key, buffer.array.layout().dims()));
  });
}

// ---- The type. ----

PyType_Slot slots[] = {
    {Py_tp_doc, const_cast<char*>(doc("Buffer"))},
    {Py_tp_new, reinterpret_cast<void*>(Type::refuse_new)},
    {Py_tp_dealloc, reinterpret_cast<void*>(Type::deallocate)},
    {Py_tp_getset, getters},
    {Py_tp_methods, methods},
    {Py_tp_members, members},
    {Py_bf_getbuffer, reinterpret_cast<void*>(Type::get_buffer)},
    {Py_mp_subscript, reinterpret_cast<void*>(subscript_slot)},
    {Py_mp_length, reinterpret_cast<void*>(Type::length)},
    {Py_sq_item, reinterpret_cast<void*>(Type::item)},
    {Py_sq_length, reinterpret_cast<void*>(Type::length)},
    {0, nullptr},
};

PyType_Spec spec = {
    .name = "gridbuf.Buffer",
    .basicsize = sizeof(BufferObject),
    .itemsize = 0,
    .flags = Py_TPFLAGS_DEFAULT,  // and, once it is complete, immutable
    .slots = slots,
};

// ---- Allocation. ----

}  // namespace

Py_buffer answer_of(const BufferDescriptor& memory, int flags) {
  const BufferFields fields = value_of(answer_buffer_request(memory, flags));
  Py_buffer answer{};
  answer.buf = fields.buf;
  answer.len = fields.len_bytes;
  answer.itemsize = fields.itemsize_bytes;
  answer.readonly = fields.readonly ? 1 : 0;
  answer.ndim = fields.ndim;
  answer.format = const_cast<char*>(fields.format);
  answer.shape = const_cast<Py_ssize_t*>(fields.shape);
  answer.strides = const_cast<Py_ssize_t*>(fields.strides_bytes);
  return answer;
}

void answer_request(BufferObject& buffer, Py_buffer& view, int flags) {
  view = answer_of(buffer.array.memory(), flags);
  wait_for_host(buffer);
}

BufferObject* object_of(PyObject* buffer) { return reinterpret_cast<BufferObject*>(buffer); }
PyTypeObject* buffer_type() { return the_type; }

bool is_buffer(PyObject* object) { return Py_TYPE(object) == the_type; }

const Array& array_in(PyObject* buffer) { return object_of(buffer)->array; }
const DTypePtr& dtype_of(PyObject* buffer) { return object_of(buffer)->dtype; }

py::object allocate_buffer(const Layout& layout, const DTypePtr& dtype,
                           const ArrayOptions& options) {
  const bool zeroes = options.zeroed || options.zeroed_padding;
  const bool is_long = options.memory != MemoryKind::kHost || options.populate ||
                       (zeroes && layout.total_bytes() >= kLongBytes);
  ArrayOptions named = options;
  named.dtype_name = dtype->name;
  const auto allocate = [&] { return Array::allocate_memory(layout, dtype->type, named); };
  absl::StatusOr<ArrayMemory> memory = is_long ? run_without_gil(allocate) : allocate();
  if (!memory.ok()) raise(memory.status());
  return new_buffer(dtype, nullptr, [&] { return Array(*std::move(memory), layout, dtype->type); });
}

bool has_plan(PyObject* buffer) { return !whole(*object_of(buffer)).adopted; }

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
  return ndarray_of(on_host ? view.ptr() : copy_of(view.ptr(), MemoryKind::kHost).ptr());
}

namespace {

// ---- Copies and pickles. ----

/// The elements in row-major order, without padding and with zeros in their gaps: for pickles.
py::object element_bytes(PyObject* self) {
  const BufferDescriptor& memory = object_of(self)->array.memory();
  if (!is_host_readable(memory.device.type)) {
    return element_bytes(copy_of(self, MemoryKind::kHost).ptr());
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
  if (memory.nbytes() > 0 && shared_place(memory.first_element())) {
    const py::object reduce = py::module_::import("gridbuf._pickles").attr("reduce_shared");
    return reduce(py::handle(self));
  }
  const py::object arguments =
      py::make_tuple(pickled_elements(self, protocol), from_integers(memory.view.shape.span()),
                     buffer.dtype->numpy, make_text(to_string(memory_kind(memory.device.type))),
                     memory.readonly, pickled_parameters(buffer.array.layout()));
  return pack(py::module_::import("gridbuf._pickles").attr("restore_buffer"), arguments);
}

py::object copy_of(PyObject* buffer, MemoryKind kind) {
  const BufferObject& source = *object_of(buffer);
  const BufferDescriptor& memory = source.array.memory();
  const bool on_host = kind == MemoryKind::kHost && memory.device.type == DeviceType::kHost;
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
  const bool gpu = is_on(Side::kDevice, memory_kind(buffer.array.memory().device.type));
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
  text += ", memory=" + std::string(to_string(memory_kind(buffer.array.memory().device.type)));
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
  return copy_of(
      self_of(buffer),
      to_memory_kind(memory.ptr()).value_or(memory_kind(buffer.array.memory().device.type)));
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
            return make_text(to_string(memory_kind(buffer.array.memory().device.type)));
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

void add_attributes(PyObject* type) {
  py::options options;
  options.disable_function_signatures();
  Attributes attributes(type);
  add_properties(attributes);
  add_methods(attributes);
}

}  // namespace

void add_buffer_type(PyObject* module) {
  const py::object type = steal(PyType_FromSpec(&spec));
  // An attribute of the type and not of its objects (DX-01); it does not change after this.
  check(PyObject_SetAttrString(type.ptr(), dlpack::kExchangeAttribute,
                               make_exchange_capsule().ptr()));
  add_attributes(type.ptr());
  the_type = reinterpret_cast<PyTypeObject*>(Py_NewRef(type.ptr()));
  the_type->tp_flags |= Py_TPFLAGS_IMMUTABLETYPE;
  check(PyModule_AddObjectRef(module, "Buffer", type.ptr()));
}

}  // namespace gridbuf::python
