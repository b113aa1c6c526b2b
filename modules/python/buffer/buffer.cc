// The type itself: lifetime, allocation, attributes, text.

module;

#include <Python.h>
#include <structmember.h>

#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <new>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

module gridbuf.python.buffer;

import gridbuf.alloc;
import gridbuf.alloc.host;
import gridbuf.base;
import gridbuf.device;
import gridbuf.device.registry;
import gridbuf.interface;
import gridbuf.interface.dlpack;
import gridbuf.layout;
import gridbuf.python.support;

namespace gridbuf::python {
namespace {

PyTypeObject* buffer_type = nullptr;  // Made once, kept for good.

// ---- Lifetime. ----

SpareObjects<sizeof(BufferObject)> spare_objects;

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
  std::destroy_at(&buffer->state);
  std::destroy_at(&buffer->dtype);
  spare_objects.give_back(self);
  Py_DECREF(type);
}

// ---- Attributes. ----

template <class Read>
PyObject* get(PyObject* self, Read&& read) {
  return guarded([&] { return read(object_of(self)->state); });
}

PyObject* get_shape(PyObject* self, void*) {
  return get(
      self, [](const BufferState& state) { return from_integers(state.memory.view.shape.span()); });
}
PyObject* get_strides(PyObject* self, void*) {
  return get(self, [](const BufferState& state) {
    return from_integers(state.memory.view.strides_bytes.span());
  });
}
PyObject* get_ndim(PyObject* self, void*) {
  return PyLong_FromLong(object_of(self)->state.memory.view.ndim());
}
PyObject* get_dtype(PyObject* self, void*) {
  return Py_NewRef(object_of(self)->dtype->numpy.ptr());
}
PyObject* get_nbytes(PyObject* self, void*) {
  return PyLong_FromLongLong(object_of(self)->state.memory.nbytes());
}
PyObject* get_size(PyObject* self, void*) {
  const BufferDescriptor& memory = object_of(self)->state.memory;
  return PyLong_FromLongLong(memory.nbytes() / memory.view.itemsize_bytes);
}
PyObject* get_itemsize(PyObject* self, void*) {
  return PyLong_FromLongLong(object_of(self)->state.memory.view.itemsize_bytes);
}
PyObject* get_dims(PyObject* self, void*) {
  return get(self, [](const BufferState& state) { return from_dims(state.dims); });
}
PyObject* get_layout(PyObject* self, void*) {
  return get(self, [](const BufferState& state) { return from_integers(state.layout.span()); });
}
PyObject* get_aligned_index(PyObject* self, void*) {
  return get(self,
             [](const BufferState& state) { return from_integers(state.aligned_index.span()); });
}
PyObject* get_alignment_size(PyObject* self, void*) {
  return PyLong_FromLongLong(object_of(self)->state.alignment_bytes);
}
PyObject* get_origin(PyObject* self, void*) {
  return get(self, [](const BufferState& state) { return from_integers(origin_of(state).span()); });
}
PyObject* get_readonly(PyObject* self, void*) {
  return PyBool_FromLong(object_of(self)->state.memory.readonly ? 1 : 0);
}
PyObject* get_base(PyObject* self, void*) {
  PyObject* root = object_of(self)->root;
  return Py_NewRef(root == nullptr ? Py_None : root);
}
PyObject* get_plan(PyObject* self, void*) {
  return guarded([&] {
    PyObject* root = object_of(self)->root;
    PyObject* whole = root == nullptr ? self : root;
    if (!has_plan(whole)) return share(Py_None);
    return make_plan_object(plan_of(whole), object_of(whole)->state.dims);
  });
}

PyGetSetDef getters[] = {
    {"shape", get_shape, nullptr, "Extents, in elements.", nullptr},
    {"strides", get_strides, nullptr, "Bytes from an element to the next one, per dimension.",
     nullptr},
    {"ndim", get_ndim, nullptr, "The number of dimensions.", nullptr},
    {"dtype", get_dtype, nullptr, "The numpy.dtype of the elements.", nullptr},
    {"nbytes", get_nbytes, nullptr, "Bytes of all elements, without padding.", nullptr},
    {"size", get_size, nullptr, "The number of elements, without padding.", nullptr},
    {"itemsize", get_itemsize, nullptr, "Bytes of one element.", nullptr},
    {"dims", get_dims, nullptr,
     "Names of the dimensions: 'I', 'J', 'K' or the number of a data dimension.", nullptr},
    {"layout", get_layout, nullptr,
     "The layout map: entry i is the rank of dimension i, 0 for the largest stride.", nullptr},
    {"aligned_index", get_aligned_index, nullptr, "The index whose element is aligned.", nullptr},
    {"alignment_size", get_alignment_size, nullptr,
     "Bytes: the address of every element whose index in the contiguous dimension is "
     "aligned_index's\n"
     "is a multiple of it. 1 means no constraint. A view has the alignment that still holds for "
     "it.",
     nullptr},
    {"memory", memory_getter, nullptr,
     "Where the elements lie: 'host', 'pinned', 'managed' or 'device'.", nullptr},
    {"device", device_getter, nullptr,
     "'gpu' for device and managed memory, None for host and pinned memory.", nullptr},
    {"stream", stream_getter, nullptr,
     "The CUDA stream that orders gridbuf's own work on the memory, as an integer (1: the legacy\n"
     "default stream); None for host memory.",
     nullptr},
    {"readonly", get_readonly, nullptr, "Whether exports forbid writing.", nullptr},
    {"base", get_base, nullptr, "The Buffer of the whole allocation, or None if this is it.",
     nullptr},
    {"plan", get_plan, nullptr,
     "The gridbuf.LayoutPlan of the allocation that this buffer shows all or a part of; None where "
     "the\n"
     "memory is not gridbuf's.",
     nullptr},
    {"T", transposed_getter, nullptr, "The view with the dimensions in reverse order.", nullptr},
    {"__array_interface__", array_interface_getter, nullptr,
     "NumPy's array interface, version 3. Absent for dtypes that it has no word for (bfloat16, "
     "FP8).",
     nullptr},
    {"__array_struct__", array_struct_getter, nullptr,
     "NumPy's array interface as a C struct in a capsule. Absent for what it cannot name.",
     nullptr},
    {"__cuda_array_interface__", cuda_array_interface_getter, nullptr,
     "The CUDA array interface, version 3, with stream. Absent for memory that CUDA devices do "
     "not\n"
     "reach.",
     nullptr},
    {"__gt_data_interface__", data_interface_getter, nullptr,
     "For GT4Py: an entry under None for the host and under 'gpu' for the device, each an array\n"
     "interface with dims and halo. Memory of both sides has both entries; acquire of its host\n"
     "entry waits for the device.",
     nullptr},
    {"__gt_dims__", get_dims, nullptr, "The names of the dimensions, for GT4Py.", nullptr},
    {"__gt_origin__", get_origin, nullptr,
     "The aligned index in the order I, J, K, 0, 1, ...: the default origin of a stencil call.",
     nullptr},
    {"default_origin", get_origin, nullptr, "The same as __gt_origin__.", nullptr},
    {nullptr, nullptr, nullptr, nullptr, nullptr},
};

template <class Function>
PyCFunction method(Function function) {
  return reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(function));
}

PyMethodDef methods[] = {
    {"to_numpy", method(to_numpy_method), METH_NOARGS,
     "to_numpy($self, /)\n--\n\nAn ndarray over the same memory."},
    {"transpose", method(transpose_method), METH_FASTCALL,
     "transpose($self, /, *axes)\n--\n\n"
     "The view whose dimension i is dimension axes[i]; without axes, all in reverse order.\n"
     "Names and aligned index follow. Raises IndexError or ValueError for axes that are no "
     "permutation."},
    {"broadcast_to", method(broadcast_to_method), METH_O,
     "broadcast_to($self, shape, /)\n--\n\n"
     "A read-only view repeated to `shape` by NumPy's rule, without copying."},
    {"toreadonly", method(to_readonly_method), METH_NOARGS,
     "toreadonly($self, /)\n--\n\nA view whose exports forbid writing."},
    {"copy", method(copy_method), METH_FASTCALL | METH_KEYWORDS,
     "copy($self, /, memory=None)\n--\n\n"
     "A new Buffer with the same elements, dims, layout and alignment, in memory 'host', "
     "'pinned',\n"
     "'managed' or 'device'; None: the same as now."},
    {"synchronize", method(synchronize_method), METH_NOARGS,
     "synchronize($self, /)\n--\n\n"
     "Waits for what is pending on the Buffer's stream. Returns at once for host memory."},
    {"__copy__", method(plain_copy_method), METH_NOARGS,
     "__copy__($self, /)\n--\n\nThe same as copy()."},
    {"__deepcopy__", method(plain_copy_method), METH_O,
     "__deepcopy__($self, memo, /)\n--\n\nThe same as copy()."},
    {"__reduce_ex__", method(reduce_method), METH_O,
     "__reduce_ex__($self, protocol, /)\n--\n\nElements and all parameters, for pickle."},
    {"__array__", method(array_method), METH_FASTCALL | METH_KEYWORDS,
     "__array__($self, /, dtype=None, copy=None)\n--\n\n"
     "An ndarray: a view unless `copy` or a conversion to `dtype` asks for another one."},
    {"__dlpack__", method(dlpack_method), METH_FASTCALL | METH_KEYWORDS,
     "__dlpack__($self, /, *, stream=None, max_version=None, dl_device=None, copy=None)\n--\n\n"
     "A DLPack capsule: versioned if max_version is (1, 0) or higher, else legacy. Work that is\n"
     "pending on the memory is ordered before `stream`. dl_device=(1, 0) gets memory of a device "
     "as\n"
     "a copy on the host. Raises BufferError for what DLPack cannot describe, ValueError for a\n"
     "stream that the device does not have."},
    {"__dlpack_device__", method(dlpack_device_method), METH_NOARGS,
     "__dlpack_device__($self, /)\n--\n\n"
     "(1, 0) for host memory, (3, 0) pinned, (13, 0) managed, (2, number) for a device's."},
    {nullptr, nullptr, 0, nullptr},
};

PyMemberDef members[] = {
    {"__weaklistoffset__", T_PYSSIZET, offsetof(BufferObject, weak_references), READONLY, nullptr},
    {nullptr, 0, 0, 0, nullptr},
};

// ---- Text. ----

std::string padding_text(const Layout& plan) {
  Extents padding;
  for (int axis = 0; axis < plan.ndim(); ++axis) {
    padding.push_back(plan.padded_shape()[axis] - plan.shape()[axis]);
  }
  return "padding=" + to_string(padding);
}

std::string text_of(PyObject* self) {
  const BufferObject& buffer = *object_of(self);
  const BufferState& state = buffer.state;
  std::string text = "gridbuf.Buffer(shape=" + to_string(state.memory.view.shape);
  text += ", dtype=" + buffer.dtype->name;
  text += ", dims=" + to_string(state.dims);
  text += ", layout=" + to_string(state.layout) + ", ";
  text += buffer.root == nullptr && has_plan(self)
              ? padding_text(plan_of(self))
              : "strides=" + to_string(state.memory.view.strides_bytes);
  text += ", alignment_size=" + std::to_string(state.alignment_bytes);
  text += ", aligned_index=" + to_string(state.aligned_index);
  text += ", memory=" + std::string(to_string(kind_of(state)));
  if (is_emulated(buffer)) text += ", emulated";
  if (state.memory.readonly) text += ", readonly=True";
  return text + (buffer.root == nullptr ? ")" : ", view)");
}

PyObject* repr(PyObject* self) {
  return guarded([&] { return make_text(text_of(self)); });
}

constexpr char kDocumentation[] =
    "Memory with its meaning: a padded, aligned n-dimensional array in a layout of choice.\n\n"
    "Made by gridbuf.allocate, in memory of the host or of a device. Exports the array interface\n"
    "(dict and struct), the CUDA array interface, the buffer protocol, DLPack (capsules and the C\n"
    "exchange table), __gt_data_interface__, __gt_dims__ and __gt_origin__. Indexing with "
    "integers, slices, None and ... gives views that\n"
    "share the memory; a full set of integers gives a NumPy scalar.";

PyType_Slot slots[] = {
    {Py_tp_doc, const_cast<char*>(kDocumentation)},
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

[[noreturn]] void raise_no_block(const absl::Status& status, const Layout& plan,
                                 const DTypeRecord& dtype, MemoryKind kind) {
  if (error_class_of(status) != ErrorClass::kMemory) raise(status);
  raise(with_context(status, "no memory for shape " + to_string(plan.shape()) + ", dtype " +
                                 dtype.name + ", layout " + to_string(plan.layout()) +
                                 ", padded shape " + to_string(plan.padded_shape()) +
                                 ", alignment " + std::to_string(plan.alignment_bytes()) +
                                 " bytes at index " + to_string(plan.aligned_index()) +
                                 ", memory " + std::string(to_string(kind)) + ", " +
                                 bytes_text(plan.total_bytes())));
}

/// Zeroing less than this is shorter than handing the GIL to another thread and back.
constexpr std::int64_t kLongBytes = std::int64_t{1} << 20;

/// Poison mode: nobody has any business between the rows. Taken off when the memory is freed.
void poison_padding(const Layout& plan, const std::byte* first_element) {
  for (int axis = 0; axis < plan.ndim(); ++axis) {
    if (plan.layout()[axis] != plan.ndim() - 1) continue;
    poison_row_padding(first_element, plan.total_bytes(),
                       plan.padded_shape()[axis] * plan.itemsize_bytes(),
                       plan.shape()[axis] * plan.itemsize_bytes());
  }
}

/// The padding of the rows as a view of bytes.
StridedView padding_of(const Layout& plan) {
  StridedView padding = plan.view();
  const int axis = plan.contiguous_axis();
  padding.offset_bytes = plan.shape()[axis] * plan.itemsize_bytes();
  padding.shape[axis] = (plan.padded_shape()[axis] - plan.shape()[axis]) * plan.itemsize_bytes();
  padding.strides_bytes[axis] = 1;
  padding.itemsize_bytes = 1;
  return padding;
}

/// Below this zeroing all of a block is as short as finding its padding.
constexpr std::int64_t kFewBytes = std::int64_t{1} << 16;

/// Whether padding is zeroed apart, for elements that are all written anyhow.
bool zeroes_padding_alone(const Layout& plan, const MemoryOptions& options) {
  return options.zeroed_padding && !options.zeroed && options.kind == MemoryKind::kHost &&
         plan.total_bytes() > kFewBytes;
}

/// Pages that the system has just made are zero.
bool is_zero_already(const BlockFacts& facts) {
  return facts.pages != PageKind::kShared && !facts.from_cache && !host_resource().poisons();
}

/// Pinned and managed memory is not made on a stream, but worked on, and exported, on a stream.
/// Not inline: the thread's variable would then be looked up for host memory, too.
[[gnu::noinline]] void set_stream(BlockFacts& facts) { facts.stream = current_stream(); }

absl::StatusOr<Block> allocate_block(const Layout& plan, const MemoryOptions& options) {
  const AllocationRequest request{.total_bytes = plan.total_bytes(),
                                  .alignment_bytes = plan.alignment_bytes(),
                                  .aligned_offset_bytes = plan.aligned_offset_bytes(),
                                  .zeroed = options.zeroed,
                                  .populate = options.populate};
  const bool host = options.kind == MemoryKind::kHost;
  const bool long_work = options.populate || (options.zeroed && plan.total_bytes() >= kLongBytes);
  if (host && !long_work) return host_resource().allocate(request);
  const absl::StatusOr<MemoryResource*> resource = memory_resource(options.kind);
  if (!resource.ok()) return resource.status();
  const py::gil_scoped_release_simple released;  // Pages and drivers take their time.
  return (*resource)->allocate(request);
}

}  // namespace

BufferObject* object_of(PyObject* buffer) { return reinterpret_cast<BufferObject*>(buffer); }

void add_buffer_type(PyObject* module) {
  const py::object type = steal(PyType_FromSpec(&spec));
  // An attribute of the type and not of its objects (DX-01); nobody changes it after this.
  check(PyObject_SetAttrString(type.ptr(), dlpack::kExchangeAttribute,
                               make_exchange_capsule().ptr()));
  buffer_type = reinterpret_cast<PyTypeObject*>(Py_NewRef(type.ptr()));
  buffer_type->tp_flags |= Py_TPFLAGS_IMMUTABLETYPE;
  check(PyModule_AddObjectRef(module, "Buffer", reinterpret_cast<PyObject*>(buffer_type)));
}

namespace {
ArrayDoor array_door{.is_array = nullptr, .to_buffer = nullptr};
}  // namespace

void set_array_door(const ArrayDoor& door) { array_door = door; }

py::object buffer_of_array(PyObject* object, DeviceType side, Purpose purpose) {
  if (array_door.is_array == nullptr || !array_door.is_array(object)) return py::object();
  return array_door.to_buffer(object, side, purpose);
}

bool is_buffer(PyObject* object) { return Py_TYPE(object) == buffer_type; }

const BufferState& state_of(PyObject* buffer) { return object_of(buffer)->state; }
const DTypePtr& dtype_of(PyObject* buffer) { return object_of(buffer)->dtype; }

py::object new_object(const DTypePtr& dtype, PyObject* root) {
  auto* memory = static_cast<PyObject*>(spare_objects.take());
  if (memory == nullptr) throw std::bad_alloc();
  py::object object = steal(PyObject_Init(memory, buffer_type));
  BufferObject* buffer = object_of(object.ptr());  // Nothing below can fail.
  buffer->weak_references = nullptr;
  buffer->root = Py_XNewRef(root);
  buffer->adopted = false;
  std::construct_at(&buffer->dtype, dtype);
  // Without (), which would write zeros to all the entries that nobody reads.
  ::new (static_cast<void*>(&buffer->strides_elements)) Extents;
  buffer->granted_flags = std::numeric_limits<std::int64_t>::min();
  return object;
}

py::object allocate_buffer(const Layout& plan, const Dims& dims, const DTypePtr& dtype,
                           const MemoryOptions& options) {
  const bool padding_alone = zeroes_padding_alone(plan, options);
  MemoryOptions wanted = options;
  wanted.zeroed = options.zeroed || (options.zeroed_padding && !padding_alone);
  absl::StatusOr<Block> block = allocate_block(plan, wanted);
  if (!block.ok()) raise_no_block(block.status(), plan, *dtype, options.kind);
  std::byte* const first_element = block->data();
  if (padding_alone && !is_zero_already(block->facts())) {
    const std::byte zero{0};
    fill_memory(first_element, padding_of(plan), &zero);
  }
  if (options.kind == MemoryKind::kHost && host_resource().poisons()) {
    poison_padding(plan, first_element);
  }
  BlockFacts facts = block->facts();
  if (facts.stream == 0 && options.kind != MemoryKind::kHost) set_stream(facts);
  const std::int64_t allocation_bytes = block->allocation_bytes();
  absl::StatusOr<Owner> owner = share(*std::move(block));
  if (!owner.ok()) raise_no_block(owner.status(), plan, *dtype, options.kind);
  return new_buffer(dtype, nullptr, [&]() noexcept -> BufferState {
    return {.memory = {.block = first_element,
                       .view = plan.view(),
                       .dtype = dtype->type,
                       .device = facts.device,
                       .owner = *std::move(owner)},
            .dims = dims,
            .layout = plan.layout(),
            .aligned_index = plan.aligned_index(),
            .alignment_bytes = plan.alignment_bytes(),
            .facts = facts,
            .allocation_bytes = allocation_bytes};
  });
}

py::object adopt_buffer(BufferState&& state, const DTypePtr& dtype, PyObject* keep_alive) {
  state.memory.owner = share_object(std::move(state.memory.owner), keep_alive);
  py::object buffer =
      new_buffer(dtype, nullptr, [&]() noexcept -> BufferState { return std::move(state); });
  object_of(buffer.ptr())->adopted = true;
  return buffer;
}

bool has_plan(PyObject* buffer) {
  PyObject* root = object_of(buffer)->root;
  return !object_of(root == nullptr ? buffer : root)->adopted;
}

Layout plan_of(PyObject* buffer) {
  PyObject* root = object_of(buffer)->root;
  const BufferState& state = object_of(root == nullptr ? buffer : root)->state;
  // The same request gives the same plan: it need not be kept.
  return value_of(make_plan({.shape = state.memory.view.shape,
                             .itemsize_bytes = state.memory.view.itemsize_bytes,
                             .layout = state.layout,
                             .alignment_bytes = state.alignment_bytes,
                             .aligned_index = state.aligned_index}));
}

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

Extents origin_of(const BufferState& state) {
  return in_annotation_order(state.dims, state.aligned_index);
}

}  // namespace gridbuf::python
