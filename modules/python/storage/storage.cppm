// gridbuf.python.storage: the types and functions of `gridbuf.storage`.
//
// Purpose. `gridbuf::Storage` is complete without Python; this module is what Python sees of it:
// the base type `_core.StorageBase` with its slots, the functions that make storages, `SyncState`,
// and the few private methods over which `gridbuf.storage` (in Python) puts NumPy's functions.
//
// Key choices. The object holds a C++ Storage and the NumPy dtype, and nothing else of importance:
// a view is another such object. No interface is written twice: what leaves a storage leaves
// through a Buffer over the memory of one side, whose owner is a share that counts as an export
// while it lives. The buffer protocol alone is answered here, for its consumers hold the object
// itself.
//
// Values are moved by NumPy on the host and by gridbuf.transfer to and from a device. Nothing is
// computed on a device here; that is what `_read_array`, `_write_array` and `_run_kernel` are for.
//
// The Python lock. Whatever may wait for a device, or for another thread that is copying, runs
// without it: kernels of the emulated device may be Python. `up_to_date` and `Writing` are the two
// places that know.
//
// All functions need the GIL.

module;

#include <Python.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <new>
#include <optional>
#include <span>
#include <string_view>

#include "absl/status/status.h"

export module gridbuf.python.storage;

import gridbuf.device;
import gridbuf.interface;
import gridbuf.interface.buffer;
import gridbuf.interface.dlpack;
import gridbuf.interface.numpy;
import gridbuf.layout;
import gridbuf.python.buffer;
import gridbuf.python.support;
import gridbuf.storage;
import gridbuf.storage.sync;

export namespace gridbuf::python {

/// Adds the types and functions to `module`. Called once, by the extension's initialisation.
void add_storage_types(PyObject* module);

/// Adds `copyto`, from any array into any other. Called once, by the extension's initialisation.
void add_copyto_function(PyObject* module);

bool is_storage(PyObject* object);

/// The C++ storage of an object; lives while that does. Requires is_storage(object).
const Storage& storage_of(PyObject* object);

/// Tells the producer of foreign memory that a side of it was written, if it asked to be told.
void touch_storage(PyObject* storage, Side side);

/// A new object, of the class of the storage's kind.
py::object make_storage(Storage storage, const DTypePtr& dtype);

}  // namespace gridbuf::python

// What the implementation files share; a namespace of its own, as a Buffer has slots of these
// names.
namespace gridbuf::python::storages {

/// What the buffer protocol and borrowed DLPack tensors point into while others hold the object.
struct ShownMemory {
  BufferDescriptor memory;
  Extents strides_elements;
};

/// What a foreign producer wants to be called after its memory was written, by side; mostly none.
struct TouchHooks {
  py::object host;
  py::object device;
};

struct StorageHead {
  PyObject ob_base;
  PyObject* weak_references;
};

struct StorageObject {
  StorageHead head;
  DTypePtr dtype;
  Storage storage;
  std::shared_ptr<const TouchHooks> touch;
  std::unique_ptr<ShownMemory> shown_host;    // made when first asked for
  std::unique_ptr<ShownMemory> shown_device;  // the same
  py::object parameters;  // `_parameters`, made when first asked for; none after the halo was set
  // Bit i: dimension i was put in by None. It is called by the next free number, but nobody named
  // it, so that arithmetic and assignment may take it for what stands at its place (spec 11.34).
  std::uint64_t new_axes = 0;
};
static_assert(kMaxNdim <= 64, "StorageObject::new_axes has a bit for each dimension");

StorageObject* object_of(PyObject* storage);
bool has_storage_type(PyObject* object);
py::object make_object(Storage storage, const DTypePtr& dtype);
void add_types(PyObject* module);

/// A new object whose storage is not there yet.
py::object new_object(const DTypePtr& dtype, StorageKind kind);

/// A new object with the storage that `make_storage` returns. It is made in its place, because it
/// is five kilobytes long, of which little is in use. `make_storage` must not throw.
template <class MakeStorage>
py::object make_object_of(const DTypePtr& dtype, StorageKind kind,
                          const MakeStorage& make_storage) {
  static_assert(noexcept(make_storage()));
  py::object made = new_object(dtype, kind);
  ::new (static_cast<void*>(&object_of(made.ptr())->storage)) Storage(make_storage());
  return made;
}

/// A view of the memory behind `parent`, which keeps its hooks.
py::object make_view(const StorageObject& parent, Storage view);
py::object make_view(const StorageObject& parent, const IndexMap& map);

/// The storage of `object` without the axes of extent 1 that None has put in.
Storage without_new_axes(const StorageObject& object);

/// The key of a side in Python: "host" or "device".
Side to_side(PyObject* object);

// ---- Access. ----

/// Runs `body`, which touches no Python object; without the GIL where it may have to wait.
template <class Body>
auto run_unlocked(const Storage& storage, Body&& body) {
  if (storage.kind() == StorageKind::kCpu) return body();
  return run_without_gil(body);
}

/// Makes the elements current on `side`, and readable there. GTNoSuchBufferError without one.
void up_to_date(const Storage& storage, Side side);

/// A write by gridbuf: begins with its marks, so that a failure half way leaves them; `done` ends
/// it and tells a foreign producer. Sides and coverage as in gridbuf.storage.
class Writing {
 public:
  Writing(const StorageObject& object, const Storage& view, Side side, Coverage coverage);
  ~Writing();
  Writing(const Writing&) = delete;
  Writing& operator=(const Writing&) = delete;
  void done();

 private:
  const StorageObject& object_;
  const Storage& view_;
  Side side_;
  bool open_ = true;
};

/// Calls the producer's `touch` of the side, if it has one.
void touch(const StorageObject& object, Side side);

/// A Buffer over a side's memory that is not watched: for gridbuf's own use.
py::object own_buffer(const Storage& storage, const DTypePtr& dtype, Side side);
/// The same, up to date, and watched as an export while it or anything made of it lives.
py::object shown_buffer(const Storage& storage, const DTypePtr& dtype, Side side);

/// An ndarray over the host's elements, for gridbuf's own use; `base` is kept alive.
py::object own_ndarray(const Storage& view, const DTypePtr& dtype, bool readonly, PyObject* base);

/// The elements in host memory: up to date, read-only, in place where the host reads them, else a
/// copy.
py::object host_elements(const StorageObject& object, const Storage& view);

/// The side on which gridbuf reads elements to bring them to the host.
Side reading_side(const Storage& storage);

// ---- Values. ----

/// `value` as what the host can read: an ndarray; a storage's elements brought up to date, an array
/// of a device copied.
py::object readable_on_host(PyObject* value);

/// view[...] = value, with NumPy's rules for numbers and arrays, and by the names of dimensions for
/// storages and foreign arrays that declare names. (A Buffer and an ndarray are without: theirs are
/// defaults more often than not.)
void assign(const StorageObject& object, const Storage& view, PyObject* value);

/// The one element of a storage without dimensions, as NumPy's scalar.
py::object element_of(const StorageObject& object, const Storage& view);

/// `value` seen with the dimensions of `target`: permuted, and repeated along those that it has
/// not. ValueError for dimensions that the target has not, and for unequal extents.
Storage named_like(const Storage& value, const Storage& target);

/// The same, dimension by dimension whatever their names, for a value of the target's shape.
void assign_by_position(const StorageObject& object, PyObject* value);

// ---- Requests. ----

/// The keyword-only parameters of storages as passed: borrowed, null if not given.
struct StorageKeywords {
  Keywords shared;
  PyObject* managed = nullptr;
};

/// Their names, in the order of `to_storage_keywords`.
inline constexpr const char* kStorageKeywordNames[] = {
    "defaults", "device",   "layout", "alignment_size", "aligned_index",
    "dims",     "populate", "halo",   "managed"};
inline constexpr int kStorageKeywordCount = 9;
StorageKeywords to_storage_keywords(std::span<PyObject* const> values);

/// Who keeps both sides in step; nothing if it was not given. None asks for nobody.
std::optional<Managed> to_managed(PyObject* managed);

/// The management that makes a kind what it is.
Managed managed_of(StorageKind kind);

/// What an imitated or copied array has, and who manages it if it says so. `dims` is the caller's
/// parameter of that name, which may be null; with it names that no storage has do not matter.
struct StorageSource {
  Source shared;
  std::optional<Managed> managed;
};
StorageSource storage_source_of(PyObject* data, PyObject* dims);

/// A request for a storage, resolved.
struct StorageOrder {
  Request request;
  StorageKind kind = StorageKind::kCpu;
};
StorageOrder resolve_storage(PyObject* shape, PyObject* dtype, const StorageKeywords& keywords);
StorageOrder resolve_storage_like(const StorageSource& source, PyObject* dtype,
                                  const StorageKeywords& keywords);
py::object allocate_storage(const StorageOrder& order, bool zeroed);
/// Whether there are bytes that belong to no element: every function but `empty` zeroes them.
bool has_padding(const StorageOrder& order);

// ---- Slots and methods, by file. ----

// exports.cc
int get_buffer(PyObject* self, Py_buffer* view, int flags);
void release_buffer(PyObject* self, Py_buffer* view);
PyObject* to_numpy_method(PyObject* self, PyObject*);
PyObject* to_cupy_method(PyObject* self, PyObject*);
PyObject* to_ndarray_method(PyObject* self, PyObject*);
PyObject* array_method(PyObject* self, PyObject* const* arguments, Py_ssize_t count,
                       PyObject* names);
PyObject* dlpack_method(PyObject* self, PyObject* const* arguments, Py_ssize_t count,
                        PyObject* names);
PyObject* dlpack_device_method(PyObject* self, PyObject*);
PyObject* array_interface_getter(PyObject* self, void*);
PyObject* array_struct_getter(PyObject* self, void*);
PyObject* cuda_array_interface_getter(PyObject* self, void*);
PyObject* data_interface_getter(PyObject* self, void*);
PyObject* data_getter(PyObject* self, void*);
PyObject* device_data_getter(PyObject* self, void*);
PyObject* acquire_host_method(PyObject* self, PyObject*);
PyObject* acquire_device_method(PyObject* self, PyObject*);

// exchange.cc
py::object make_storage_exchange_capsule();

// indexing.cc
PyObject* subscript_slot(PyObject* self, PyObject* key);
int assign_subscript_slot(PyObject* self, PyObject* key, PyObject* value);
PyObject* item_slot(PyObject* self, Py_ssize_t position);
Py_ssize_t length_slot(PyObject* self);
PyObject* iterate_slot(PyObject* self);
PyObject* transposed_getter(PyObject* self, void*);
PyObject* transpose_method(PyObject* self, PyObject* const* arguments, Py_ssize_t count);

// values.cc
PyObject* item_method(PyObject* self, PyObject* const* arguments, Py_ssize_t count);
PyObject* tolist_method(PyObject* self, PyObject*);
PyObject* fill_method(PyObject* self, PyObject* value);
PyObject* astype_method(PyObject* self, PyObject* const* arguments, Py_ssize_t count,
                        PyObject* names);
PyObject* copy_method(PyObject* self, PyObject*);
PyObject* deepcopy_method(PyObject* self, PyObject*);
PyObject* reduce_method(PyObject* self, PyObject* protocol);
PyObject* float_slot(PyObject* self);
PyObject* int_slot(PyObject* self);
PyObject* index_slot(PyObject* self);
int bool_slot(PyObject* self);
PyObject* complex_method(PyObject* self, PyObject*);

// sync_state.cc
void add_sync_state_type(PyObject* module);
py::object make_sync_state(const std::shared_ptr<SyncState>& state);
/// The state of a SyncState object; TypeError for other objects.
std::shared_ptr<SyncState> to_sync_state(PyObject* object);

// pointer.cc
void add_pointer_type(PyObject* module);
/// Where a Buffer's elements begin on the device; keeps the Buffer.
py::object make_device_pointer(const py::object& buffer);

// kernels.cc: what Python's array functions are made of.
PyObject* read_array_method(PyObject* self, PyObject* const* arguments, Py_ssize_t count,
                            PyObject* names);
PyObject* write_array_method(PyObject* self, PyObject* const* arguments, Py_ssize_t count,
                             PyObject* names);
PyObject* written_method(PyObject* self, PyObject* side);
PyObject* own_memory_method(PyObject* self, PyObject*);
PyObject* current_sides_method(PyObject* self, PyObject*);
PyObject* run_kernel(PyObject*, PyObject* const* arguments, Py_ssize_t count);

// functions.cc, wrapping.cc
void add_storage_functions(PyObject* module);
PyObject* as_storage_function(PyObject*, PyObject* const* arguments, Py_ssize_t count,
                              PyObject* names);
PyObject* storage_function(PyObject*, PyObject* const* arguments, Py_ssize_t count,
                           PyObject* names);
PyObject* restore_storage(PyObject*, PyObject* const* arguments, Py_ssize_t count);

}  // namespace gridbuf::python::storages
