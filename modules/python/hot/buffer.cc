// The type Buffer: lifetime, attributes, buffer requests, indexing (promises `hand-over`,
// `subscript`).

module;

#include <Python.h>
#include <structmember.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <span>
#include <string>
#include <type_traits>
#include <utility>
#include <variant>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "modules/python/support/docstrings.h"

module gridbuf.python;

namespace gridbuf::python {
namespace {

PyTypeObject* the_type = nullptr;  // Made once, kept for good.

using Type = ArrayType<BufferObject>;

// The attributes that are hot; add_buffer_attributes adds the others.
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

// ---- Buffer requests (PB-01 ... PB-25). ----

int get_buffer(PyObject* self, Py_buffer* view, int flags) {
  if (view == nullptr) {
    PyErr_SetString(PyExc_BufferError, "a buffer request needs a Py_buffer to fill; pass one");
    return -1;
  }
  view->obj = nullptr;  // PB-01: also on failure.
  return guarded(-1, [&] {
    // The answer leads into the object, which the request then holds (PB-25).
    BufferObject& buffer = *object_of(self);
    bool is_granted = false;
    {
      const PythonLock lock(buffer.head.mutex);
      is_granted = flags == buffer.granted_flags;
      if (is_granted) *view = buffer.granted;
    }
    if (!is_granted) {
      const Py_buffer answer = answer_of(buffer.array.memory(), flags);
      const PythonLock lock(buffer.head.mutex);
      buffer.granted = *view = answer;
      buffer.granted_flags = flags;
    }
    if (buffer.array.memory().device.type != DeviceType::kHost) wait_for_host(buffer);
    view->obj = Py_NewRef(self);
    return 0;
  });
}

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
    {Py_bf_getbuffer, reinterpret_cast<void*>(get_buffer)},
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

BufferObject* object_of(PyObject* buffer) { return reinterpret_cast<BufferObject*>(buffer); }
PyTypeObject* buffer_type() { return the_type; }

void add_buffer_type(PyObject* module) {
  const py::object type = steal(PyType_FromSpec(&spec));
  // An attribute of the type and not of its objects (DX-01); it does not change after this.
  check(PyObject_SetAttrString(type.ptr(), dlpack::kExchangeAttribute,
                               make_exchange_capsule().ptr()));
  add_buffer_attributes(type.ptr());
  the_type = reinterpret_cast<PyTypeObject*>(Py_NewRef(type.ptr()));
  the_type->tp_flags |= Py_TPFLAGS_IMMUTABLETYPE;
  check(PyModule_AddObjectRef(module, "Buffer", type.ptr()));
}

bool is_buffer(PyObject* object) { return Py_TYPE(object) == the_type; }

const Array& array_in(PyObject* buffer) { return object_of(buffer)->array; }
const DTypePtr& dtype_of(PyObject* buffer) { return object_of(buffer)->dtype; }

py::object allocate_buffer(const Layout& layout, const DTypePtr& dtype,
                           const ArrayOptions& options) {
  const bool zeroes = options.zeroed || options.zeroed_padding;
  const bool is_long = options.memory != DeviceType::kHost || options.populate ||
                       (zeroes && layout.total_bytes() >= kLongBytes);
  ArrayOptions named = options;
  named.dtype_name = dtype->name;
  const auto allocate = [&] { return Array::allocate_memory(layout, dtype->type, named); };
  absl::StatusOr<ArrayMemory> memory = is_long ? run_without_gil(allocate) : allocate();
  if (!memory.ok()) raise(memory.status());
  return new_buffer(dtype, nullptr, [&] { return Array(*std::move(memory), layout, dtype->type); });
}

bool has_plan(PyObject* buffer) { return !whole(*object_of(buffer)).adopted; }

}  // namespace gridbuf::python
