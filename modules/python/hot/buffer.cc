// The type Buffer: lifetime, attributes, buffer requests, indexing (benchmarks `asarray`, `index`).

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

PyTypeObject* buffer_type = nullptr;  // Made once, kept for good.

// ---- Lifetime. ----

PyObject* refuse_new(PyTypeObject*, PyObject*, PyObject*) {
  PyErr_SetString(PyExc_TypeError,
                  "gridbuf.Buffer cannot be called; use gridbuf.allocate(shape, dtype, ...)");
  return nullptr;
}

void deallocate(PyObject* self) {
  PyTypeObject* type = Py_TYPE(self);
  BufferObject* buffer = object_of(self);
  if (buffer->weak_references != nullptr) PyObject_ClearWeakRefs(self);
  Py_XDECREF(buffer->root);
  std::destroy_at(&buffer->strides_elements);
  std::destroy_at(&buffer->array);
  std::destroy_at(&buffer->dtype);
  PyObject_Free(self);
  Py_DECREF(type);
}

// ---- Attributes. ----

PyObject* get_shape(PyObject* self, void*) {
  return guarded([&] { return from_integers(object_of(self)->array.shape().span()); });
}
PyObject* get_ndim(PyObject* self, void*) {
  return PyLong_FromLong(object_of(self)->array.layout.ndim());
}
PyObject* get_dtype(PyObject* self, void*) {
  return Py_NewRef(object_of(self)->dtype->numpy.ptr());
}

// The attributes that are hot; add_buffer_attributes adds the others.
PyGetSetDef getters[] = {
    {"shape", get_shape, nullptr, doc("Buffer.shape"), nullptr},
    {"ndim", get_ndim, nullptr, doc("Buffer.ndim"), nullptr},
    {"dtype", get_dtype, nullptr, doc("Buffer.dtype"), nullptr},
    {nullptr, nullptr, nullptr, nullptr, nullptr},
};

PyMethodDef methods[] = {
    {"__dlpack__", method(dlpack_method), METH_FASTCALL | METH_KEYWORDS, doc("Buffer.__dlpack__")},
    {"__dlpack_device__", method(dlpack_device_method), METH_NOARGS,
     doc("Buffer.__dlpack_device__")},
    {nullptr, nullptr, 0, nullptr},
};

PyMemberDef members[] = {
    {"__weaklistoffset__", T_PYSSIZET, offsetof(BufferObject, weak_references), READONLY, nullptr},
    {nullptr, 0, 0, 0, nullptr},
};

// ---- Text. ----

std::string padding_text(const Layout& plan) {
  Extents padding(plan.ndim(), 0);
  if (plan.row_padding() != 0) padding[plan.contiguous_axis()] = plan.row_padding();
  return "padding=" + to_string(padding);
}

std::string text_of(PyObject* self) {
  const BufferObject& buffer = *object_of(self);
  const Layout& layout = buffer.array.layout;
  std::string text = "gridbuf.Buffer(shape=" + to_string(layout.shape());
  text += ", dtype=" + buffer.dtype->name;
  text += ", dims=" + to_string(layout.dims());
  text += ", layout=" + to_string(layout.layout()) + ", ";
  text += buffer.root == nullptr && has_plan(self) ? padding_text(layout)
                                                   : "strides=" + to_string(layout.strides_bytes());
  text += ", alignment_size=" + std::to_string(layout.alignment_bytes());
  text += ", aligned_index=" + to_string(layout.aligned_index());
  text += ", memory=" + std::string(memory_name(buffer.array.memory.device.type));
  if (is_emulated(buffer)) text += ", emulated";
  if (buffer.array.memory.readonly) text += ", readonly=True";
  return text + (buffer.root == nullptr ? ")" : ", view)");
}

PyObject* repr(PyObject* self) {
  return guarded([&] { return make_text(text_of(self)); });
}

// ---- Buffer requests (PB-01 ... PB-25). ----

/// The answer to a request that can be met, but for the owner.
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

int get_buffer(PyObject* self, Py_buffer* view, int flags) {
  if (view == nullptr) {
    PyErr_SetString(PyExc_BufferError, "a buffer request needs a Py_buffer to fill; pass one");
    return -1;
  }
  view->obj = nullptr;  // PB-01: also on failure.
  return guarded(-1, [&] {
    // The answer leads into the object, which the request then holds (PB-25).
    BufferObject& buffer = *object_of(self);
    if (flags != buffer.granted_flags) {
      buffer.granted = answer_of(buffer.array.memory, flags);
      buffer.granted_flags = flags;
    }
    // Before waiting, which gives the GIL away: another thread may then ask with other flags.
    *view = buffer.granted;
    if (buffer.array.memory.device.type != DeviceType::kHost) wait_for_host(buffer);
    view->obj = Py_NewRef(self);
    return 0;
  });
}

// ---- Indexing. ----

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

// ---- The type. ----

PyType_Slot slots[] = {
    {Py_tp_doc, const_cast<char*>(doc("Buffer"))},
    {Py_tp_new, reinterpret_cast<void*>(refuse_new)},
    {Py_tp_dealloc, reinterpret_cast<void*>(deallocate)},
    {Py_tp_repr, reinterpret_cast<void*>(repr)},
    {Py_tp_getset, getters},
    {Py_tp_methods, methods},
    {Py_tp_members, members},
    {Py_bf_getbuffer, reinterpret_cast<void*>(get_buffer)},
    {Py_mp_subscript, reinterpret_cast<void*>(subscript_slot)},
    {Py_mp_length, reinterpret_cast<void*>(length_slot)},
    {Py_sq_item, reinterpret_cast<void*>(item_slot)},
    {Py_sq_length, reinterpret_cast<void*>(length_slot)},
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

[[noreturn]] void raise_no_block(const absl::Status& status, const Layout& layout,
                                 const DTypeRecord& dtype, DeviceType kind) {
  raise(with_request(status, layout, dtype.name, kind));
}

/// Zeroing less than this is shorter than handing the GIL to another thread and back.
constexpr std::int64_t kLongBytes = std::int64_t{1} << 20;

/// Pinned and managed memory is not made on a stream, but worked on, and exported, on a stream.
/// Not inline: the thread's variable would then be looked up for host memory, too.
[[gnu::noinline]] void set_stream(BlockInfo& block) { block.stream = current_stream(); }

absl::StatusOr<Block> allocate_unlocked(const Layout& layout, const ArrayOptions& options) {
  const bool zeroes = options.zeroed || options.zeroed_padding;
  const bool is_long = options.memory != DeviceType::kHost || options.populate ||
                       (zeroes && layout.total_bytes() >= kLongBytes);
  const auto allocate = [&] { return allocate_block(layout, options); };
  return is_long ? run_without_gil(allocate) : allocate();
}

}  // namespace

BufferObject* object_of(PyObject* buffer) { return reinterpret_cast<BufferObject*>(buffer); }

void add_buffer_type(PyObject* module) {
  const py::object type = steal(PyType_FromSpec(&spec));
  // An attribute of the type and not of its objects (DX-01); it does not change after this.
  check(PyObject_SetAttrString(type.ptr(), dlpack::kExchangeAttribute,
                               make_exchange_capsule().ptr()));
  add_buffer_attributes(type.ptr());
  buffer_type = reinterpret_cast<PyTypeObject*>(Py_NewRef(type.ptr()));
  buffer_type->tp_flags |= Py_TPFLAGS_IMMUTABLETYPE;
  check(PyModule_AddObjectRef(module, "Buffer", reinterpret_cast<PyObject*>(buffer_type)));
}

bool is_buffer(PyObject* object) { return Py_TYPE(object) == buffer_type; }

const Array& array_in(PyObject* buffer) { return object_of(buffer)->array; }
const MemoryInfo& info_of(PyObject* buffer) { return whole(*object_of(buffer)).info; }
const DTypePtr& dtype_of(PyObject* buffer) { return object_of(buffer)->dtype; }

py::object new_buffer(Array&& array, const DTypePtr& dtype, PyObject* root,
                      const MemoryInfo& info) {
  static_assert(std::is_nothrow_move_constructible_v<Array>);
  py::object object = steal(PyObject_New(PyObject, buffer_type));
  BufferObject* buffer = object_of(object.ptr());  // Nothing below can fail.
  buffer->weak_references = nullptr;
  buffer->root = Py_XNewRef(root);
  buffer->adopted = false;
  buffer->info = info;
  std::construct_at(&buffer->dtype, dtype);
  std::construct_at(&buffer->array, std::move(array));
  std::construct_at(&buffer->strides_elements);
  buffer->granted_flags = std::numeric_limits<std::int64_t>::min();
  return object;
}

py::object allocate_buffer(const Layout& layout, const DTypePtr& dtype,
                           const ArrayOptions& options) {
  absl::StatusOr<Block> block = allocate_unlocked(layout, options);
  if (!block.ok()) raise_no_block(block.status(), layout, *dtype, options.memory);
  std::byte* const first_element = block->data();
  MemoryInfo info{.block = block->info(), .allocation_bytes = block->allocation_bytes()};
  if (info.block.stream == 0 && options.memory != DeviceType::kHost) set_stream(info.block);
  absl::StatusOr<Owner> owner = share(*std::move(block));
  if (!owner.ok()) raise_no_block(owner.status(), layout, *dtype, options.memory);
  return new_buffer({.memory = {.block = first_element,
                                .view = layout.view(),
                                .dtype = dtype->type,
                                .device = info.block.device,
                                .owner = *std::move(owner)},
                     .layout = layout},
                    dtype, nullptr, info);
}

py::object adopt_buffer(Array&& array, const DTypePtr& dtype, PyObject* keep_alive,
                        const MemoryInfo& info) {
  array.memory.owner = share_object(std::move(array.memory.owner), keep_alive);
  py::object buffer = new_buffer(std::move(array), dtype, nullptr, info);
  object_of(buffer.ptr())->adopted = true;
  return buffer;
}

bool has_plan(PyObject* buffer) { return !whole(*object_of(buffer)).adopted; }

Extents in_annotation_order(const Dims& dims, const Extents& entries) {
  Extents ordered;
  // A rank per name in Dim's own order (I < J < K < 0 < 1 < ...), read the other way round.
  LayoutMap order;
  for (const Dim dim : dims) {
    int position = 0;
    for (const Dim other : dims) position += other < dim ? 1 : 0;
    order.push_back(position);
  }
  for (const int axis : axes_by_rank(order)) ordered.push_back(entries[axis]);
  return ordered;
}

Extents origin_of(const Array& array) {
  return in_annotation_order(array.layout.dims(), array.layout.aligned_index());
}

}  // namespace gridbuf::python
