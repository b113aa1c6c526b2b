// gridbuf.python.buffer: the type `gridbuf.Buffer`.
//
// Purpose. A Buffer is memory with its meaning: the descriptor from which every interface is
// exported, the names of its dimensions, its layout map and the index at which it is aligned. Plain
// arrays are ndarrays over one, storages will be built on one or two.
//
// Key choices. The type is written against CPython's slots and not with a binding library, because
// its exports are the hot paths of the project. It cannot be made from Python, subclassed or
// changed: an object exists only complete, so no method ever meets a half-made one. It holds no
// reference that could lead back to itself, so it needs no cycle collection.
//
// A view is a Buffer of its own with a share in the same memory. It holds the Buffer of the whole
// allocation, its `base`, from which it has the plan. Exports hold a share in the memory and not
// the Buffer; the buffer protocol alone holds the object, because its consumers get pointers into
// it.
//
// All functions need the GIL. Long copies release it.

module;

#include <Python.h>

#include <cstddef>
#include <cstdint>
#include <new>

#include "absl/status/status.h"

export module gridbuf.python.buffer;

import gridbuf.alloc;
import gridbuf.device;
import gridbuf.interface.buffer;
import gridbuf.interface.dlpack;
import gridbuf.interface.numpy;
import gridbuf.interface;
import gridbuf.layout;
import gridbuf.python.numpy;
import gridbuf.python.object;

export namespace gridbuf::python {

/// Everything that a Buffer is but for its dtype object and its base.
struct BufferState {
  BufferDescriptor memory;  // offsets count from element (0, ..., 0) of the whole allocation
  Dims dims;
  LayoutMap layout;
  Extents aligned_index;
  std::int64_t alignment_bytes = 1;  // holds at aligned_index

  // How a whole allocation came about; a view's base has them.
  BlockFacts facts = {};
  std::int64_t allocation_bytes = 0;  // what the block costs, placement included; 0: not known
};

/// What an allocation wants of its memory.
struct MemoryOptions {
  bool zeroed = false;
  bool zeroed_padding = false;  // the bytes that belong to no element, in host memory
  bool populate = false;
  MemoryKind kind = MemoryKind::kHost;
};

/// Adds the class to `module`. Called once, by the extension's initialisation.
void add_buffer_type(PyObject* module);

bool is_buffer(PyObject* object);

/// The parts of a Buffer. They live while it does. Require is_buffer(object).
const BufferState& state_of(PyObject* buffer);
const DTypePtr& dtype_of(PyObject* buffer);

/// A new Buffer with memory of its own, as `plan` says; that of a device on the thread's current
/// stream. MemoryError, naming everything that was asked for, if there is none; and
/// DeviceUnavailableError.
py::object allocate_buffer(const Layout& plan, const Dims& dims, const DTypePtr& dtype,
                           const MemoryOptions& options);

/// A Buffer over memory that is not ours. `state` is complete: a checked descriptor (`describe`),
/// names, a layout map, an aligned index and the alignment that holds there. `keep_alive`, if not
/// null, is referred to until the Buffer, its views and all that was exported from them are gone;
/// it is let go of on whatever thread that happens, see `share_object`.
py::object adopt_buffer(BufferState&& state, const DTypePtr& dtype, PyObject* keep_alive);
/// The same with the state that `make_state` returns, which is made in its place; nothing else is
/// kept alive. `make_state` must not throw.
template <class MakeState>
py::object adopt_buffer_of(const DTypePtr& dtype, const MakeState& make_state);

/// A read-only view, for restoring one.
py::object readonly_view(PyObject* buffer);

/// A new Buffer with the same parameters and elements, in memory of kind `kind`.
py::object copy_of(PyObject* buffer, MemoryKind kind);

/// An ndarray over the buffer's elements; its base is the buffer. Waits for what a device still
/// does to them. GTNoSuchBufferError for memory that the host does not read.
py::object ndarray_of(PyObject* buffer);

/// In which kind of memory a Buffer lies.
MemoryKind kind_of(const BufferState& state);

/// Copies all elements between Buffers of one shape and item size, in whatever memory they lie.
/// What the host reads has been written at return; between two Buffers of a device the copy is
/// enqueued on the target's stream.
void copy_buffer(PyObject* target, PyObject* source);

/// The plan of the memory that the buffer shows all or a part of. Requires memory of ours: foreign
/// memory was laid out by no plan (`has_plan`).
Layout plan_of(PyObject* buffer);
bool has_plan(PyObject* buffer);

/// What the Buffer of somebody else's array is for: its parameters alone; to be read now, so that
/// it is brought up to date; or to leave gridbuf, so that it is watched as well.
enum class Purpose : std::uint8_t { kParameters, kReading, kSharing };

/// What modules above this one make known of their arrays, so that those below them can take one
/// wherever they take a Buffer.
struct ArrayDoor {
  bool (*is_array)(PyObject* object);
  /// A Buffer over the memory of a side, or of the other one if that is all there is.
  py::object (*to_buffer)(PyObject* array, DeviceType side, Purpose purpose);
};
/// Called once, by the extension's initialisation.
void set_array_door(const ArrayDoor& door);
/// The Buffer of such an array; none for every other object.
py::object buffer_of_array(PyObject* object, DeviceType side, Purpose purpose);

/// What `__dlpack__` of the buffer returns to a vectorcall with these arguments.
py::object export_dlpack(PyObject* buffer, PyObject* const* arguments, Py_ssize_t count,
                         PyObject* keywords);

/// DLPack's C exchange table of the type; those of other types may take over its functions that
/// need no object.
const dlpack::ExchangeApi& buffer_exchange_table();

/// One side's entry of `__gt_data_interface__`, over the buffer's memory. `acquire` and `touch` are
/// callables, or null for none. Requires that the side reaches the memory.
py::object make_data_entry(PyObject* buffer, DeviceType side, const Halo& halo, PyObject* acquire,
                           PyObject* touch);

/// Entries per dimension, in the order of annotations: I, J, K, then data dimensions by number.
Extents in_annotation_order(const Dims& dims, const Extents& entries);

/// The aligned index in that order.
Extents origin_of(const BufferState& state);

}  // namespace gridbuf::python

// What the implementation files share.
namespace gridbuf::python {

struct BufferObject {
  PyObject ob_base;
  PyObject* weak_references;
  PyObject* root;  // the Buffer of the whole allocation; null in that one itself
  bool adopted;    // the memory is not ours
  DTypePtr dtype;
  BufferState state;
  Extents strides_elements;  // what a DLPack tensor that owns nothing points to; filled when asked
  // The last buffer request that was granted, and its answer: the object does not change, so it is
  // the answer to the next request with these flags, and most are the same. Beyond every int: none
  // yet.
  std::int64_t granted_flags;
  Py_buffer granted;  // without its obj
};

BufferObject* object_of(PyObject* buffer);

/// A new object whose state is not there yet. `root` is borrowed, and null for a whole allocation.
py::object new_object(const DTypePtr& dtype, PyObject* root);

/// A new Buffer with the state that `make_state` returns. It is made in its place, because a state
/// is two kilobytes of which a few words are in use. `make_state` must not throw.
template <class MakeState>
py::object new_buffer(const DTypePtr& dtype, PyObject* root, const MakeState& make_state) {
  static_assert(noexcept(make_state()));
  py::object object = new_object(dtype, root);
  ::new (static_cast<void*>(&object_of(object.ptr())->state)) BufferState(make_state());
  return object;
}

template <class MakeState>
py::object adopt_buffer_of(const DTypePtr& dtype, const MakeState& make_state) {
  py::object buffer = new_buffer(dtype, nullptr, make_state);
  object_of(buffer.ptr())->adopted = true;
  return buffer;
}

// Slots and methods, by file.

// exports.cc
int get_buffer(PyObject* self, Py_buffer* view, int flags);
PyObject* array_method(PyObject* self, PyObject* const* arguments, Py_ssize_t count,
                       PyObject* keywords);
PyObject* to_numpy_method(PyObject* self, PyObject*);

// interfaces.cc
void make_interface_keys();
PyObject* array_interface_getter(PyObject* self, void*);
PyObject* array_struct_getter(PyObject* self, void*);
PyObject* cuda_array_interface_getter(PyObject* self, void*);
PyObject* data_interface_getter(PyObject* self, void*);

// dlpack.cc
PyObject* dlpack_method(PyObject* self, PyObject* const* arguments, Py_ssize_t count,
                        PyObject* keywords);
PyObject* dlpack_device_method(PyObject* self, PyObject*);

// exchange.cc
/// The capsule of DLPack's C exchange table, of which there is one in a process (DX-01, DX-02).
py::object make_exchange_capsule();

// memory.cc
/// The stream on which the Buffer's memory was made and all that gridbuf does to it is ordered.
StreamHandle stream_of(const BufferObject& buffer);
/// Waits until a device has done with memory that the host reads as well. Nothing for host memory.
void wait_for_host(const BufferObject& buffer);
/// Orders what is pending on the memory before what a consumer of an export does (DP-18, DP-24).
void order_pending(const BufferObject& buffer, const dlpack::ExportPlan& plan);
/// An error if the memory is the emulated device's and that is switched off: then nobody may take
/// it for a GPU's.
absl::Status check_device_is_on(const BufferObject& buffer);
/// Copies elements where at least one of the two is memory of the device alone.
void copy_on_device(const BufferObject& target, const BufferObject& source);
/// Whether the memory is the emulated device's.
bool is_emulated(const BufferObject& buffer);
PyObject* memory_getter(PyObject* self, void*);
PyObject* device_getter(PyObject* self, void*);
PyObject* stream_getter(PyObject* self, void*);
PyObject* synchronize_method(PyObject* self, PyObject*);

// views.cc
PyObject* subscript_slot(PyObject* self, PyObject* key);
PyObject* item_slot(PyObject* self, Py_ssize_t position);
Py_ssize_t length_slot(PyObject* self);
PyObject* transposed_getter(PyObject* self, void*);
PyObject* transpose_method(PyObject* self, PyObject* const* arguments, Py_ssize_t count);
PyObject* broadcast_to_method(PyObject* self, PyObject* shape);
PyObject* to_readonly_method(PyObject* self, PyObject*);

// copies.cc
PyObject* copy_method(PyObject* self, PyObject* const* arguments, Py_ssize_t count,
                      PyObject* keywords);
PyObject* plain_copy_method(PyObject* self, PyObject*);
PyObject* reduce_method(PyObject* self, PyObject* protocol);

}  // namespace gridbuf::python
