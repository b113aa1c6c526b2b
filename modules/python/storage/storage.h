// The types and functions of `gridbuf.storage`.
//
// The object holds a C++ Storage and the NumPy dtype; a view is another such object. Every export
// but the buffer protocol is that of a Buffer over the memory of one side. The Buffer's owner is a
// share that counts as an export while it lives.
//
// `type.cc` has the type with its slots; `attributes.cc` adds attributes by pybind11. What needs
// nothing but these is written in Python.
//
// What may wait for a device, or for another thread that copies, runs without Python's lock:
// kernels of the emulated device may be Python. See `up_to_date` and `write`.
//
// All functions need the GIL.
#ifndef GRIDBUF_MODULES_PYTHON_STORAGE_STORAGE_H_
#define GRIDBUF_MODULES_PYTHON_STORAGE_STORAGE_H_

#include "modules/python/exchange/exchange.h"

namespace gridbuf::python {

/// Adds the types and functions to `module`. Called once, by the extension's initialisation.
void add_storage_types(PyObject* module);

/// The C++ storage of an object; lives while that does. Requires is_storage(object).
const Storage& storage_of(PyObject* object);

/// Tells the producer of foreign memory that a side of it was written, if it asked to be told.
/// `written` is the shape of what was: a write of no element is not told.
void touch_storage(PyObject* storage, const Extents& written, Side side);

/// A new object, of the class of the storage's kind.
py::object make_storage(Storage&& storage, const DTypePtr& dtype);

/// A pair (lower, upper) per dimension.
py::object from_halo(const Halo& halo);

}  // namespace gridbuf::python

// What the implementation files share; a separate namespace, as a Buffer has slots of these
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

struct StorageObject {
  static constexpr char kName[] = "storage";
  static constexpr char kMakers[] =
      "gridbuf.storage.empty, zeros, ones, full, as_storage or storage";

  ArrayHead head;
  DTypePtr dtype;
  // Only the halo of an object can change. The handle with the new halo takes the place of the old
  // one, which lives on in `handles`: other threads may read it.
  std::atomic<const Storage*> current;
  std::vector<std::unique_ptr<const Storage>> handles;  // with different halos
  Storage first;
  std::shared_ptr<const TouchHooks> touch;
  std::array<std::unique_ptr<ShownMemory>, 2> shown;  // by side; made when first asked for
  py::object parameters;  // `_parameters`, made when first asked for; none after the halo was set

  PyObject* self() const { return const_cast<PyObject*>(&head.ob_base); }
  const Storage& storage() const { return *current.load(std::memory_order_acquire); }
};

StorageObject* object_of(PyObject* storage);

PyTypeObject* type_of(StorageKind kind);

/// A new object of the storage that `make` returns, which is made in its place.
template <class Make>
py::object make_object(StorageKind kind, const DTypePtr& dtype, const Make& make) {
  return make_in_place<StorageObject>(type_of(kind), [&](StorageObject* object) {
    ::new (&object->first) Storage(make());
    // Nothing below can fail.
    object->head.weak_references = nullptr;
    std::construct_at(&object->head.mutex);
    std::construct_at(&object->current, &object->first);
    std::construct_at(&object->handles);
    std::construct_at(&object->dtype, dtype);
    std::construct_at(&object->touch);
    std::construct_at(&object->shown);
    std::construct_at(&object->parameters);
  });
}

/// A view of the memory behind `parent`, which keeps its hooks.
template <class Make>
py::object make_view(const StorageObject& parent, const Make& make) {
  py::object made = make_object(parent.storage().kind(), parent.dtype, make);
  object_of(made.ptr())->touch = parent.touch;
  return made;
}
py::object view_of(const StorageObject& parent, const IndexMap& map);
inline const Extents& shape_of(const StorageObject& object) { return object.storage().shape(); }
py::object element_at(const StorageObject& object, const IndexMap& map);

/// The attribute `device`.
py::object device_of(const Storage& storage);
/// The attribute `managed`.
py::object managed_by(const Storage& storage);

/// Adds to the base type its attributes, and to `module` the class DevicePointer and the functions
/// for Python's part.
void add_attributes(PyObject* base_type, PyObject* module);

/// Runs `body`, which touches no Python object; without the GIL where it may have to wait.
template <class Body>
auto run_unlocked(const Storage& storage, Body&& body) {
  if (storage.kind() == StorageKind::kCpu) return body();
  return run_without_gil(body);
}

/// Makes the elements current on `side`, and readable there. GTNoSuchBufferError without one.
void up_to_date(const Storage& storage, Side side);

/// A write by gridbuf: `body` writes the elements. They are marked before, so that a failure half
/// way leaves the marks; a foreign producer is told afterwards. Sides and coverage as in
/// gridbuf.storage.
template <class Body>
void write(const StorageObject& object, const Storage& view, Side side, Coverage coverage,
           const Body& body) {
  check(run_unlocked(view, [&] { return view.begin_write(side, coverage); }));
  try {
    body();
  } catch (...) {
    view.end_write(side);
    throw;
  }
  view.end_write(side);
  touch_storage(object.self(), view.shape(), side);
}

/// A Buffer over a side's memory, with the storage's parameters, that is not watched: for gridbuf's
/// own use. `share`, if there is one, is its owner.
py::object own_buffer(const Storage& storage, const DTypePtr& dtype, Side side,
                      Owner share = nullptr);
/// The same, up to date, and watched as an export while it or anything made of it lives.
py::object shown_buffer(const StorageObject& object, Side side);

/// An ndarray over the host's elements, for gridbuf's own use; `base` is kept alive.
py::object own_ndarray(const Storage& view, const DTypePtr& dtype, bool readonly, PyObject* base);

/// The elements in host memory: up to date, read-only, in place where the host reads them, else a
/// copy.
py::object host_elements(const StorageObject& object, const Storage& view);

/// The side on which gridbuf reads elements to bring them to the host.
Side reading_side(const Storage& storage);
/// The side that exports without a choice are of: the device's, if there is one (DP-02).
Side exporting_side(const Storage& storage);

/// `value` as an ndarray: a storage's elements are brought up to date, those of a device copied.
py::object readable_on_host(PyObject* value);

/// view[...] = value, with NumPy's rules for numbers and arrays. Storages, and foreign arrays that
/// declare names, are paired by the names of dimensions, unless by_name is false. (A Buffer and an
/// ndarray are not: their names are defaults more often than not.)
void assign(const StorageObject& object, const Storage& view, PyObject* value, bool by_name = true);

/// `dims` of an array of another library that begin where its attribute `_gridbuf_starts` says.
Dims with_starts_of(PyObject* array, const Dims& dims);

/// ValueError for a storage that is read-only.
void check_writable(const StorageObject& object);

/// Whether the storage has a device, as the keywords or a preset say.
std::optional<bool> wished_device(const Arguments& given);

/// The kind that the parameter `managed` gives to a storage with a device; nothing if it was not
/// given.
std::optional<StorageKind> to_managed(PyObject* managed);

/// The kind as a default of `managed`: nothing for memory of the host.
inline std::optional<StorageKind> managed_of(StorageKind kind) {
  return kind == StorageKind::kCpu ? std::nullopt : std::optional(kind);
}

/// The kind of a storage: that of the host without a device, else the given or found one, else
/// managed by software.
inline StorageKind storage_kind(bool on_device, PyObject* managed,
                                std::optional<StorageKind> found) {
  const StorageKind with_device =
      to_managed(managed).value_or(found.value_or(StorageKind::kSoftwareManaged));
  return on_device ? with_device : StorageKind::kCpu;
}

/// Order and alignment of the device's buffer, which are not those of the host's.
struct SecondLayout {
  LayoutMap layout;
  std::int64_t alignment_bytes = 1;

  friend bool operator==(const SecondLayout&, const SecondLayout&) = default;
};

/// What an imitated or copied array has, and what manages it if it says so. `dims` is the caller's
/// parameter of that name, which may be null; with it names that no storage has do not matter.
struct StorageSource : Source {
  std::optional<StorageKind> managed = std::nullopt;
  std::optional<SecondLayout> on_device = std::nullopt;
};
StorageSource storage_source_of(PyObject* data, PyObject* dims);
/// `source`, or its device's side if that is all that the keywords leave.
StorageSource kept_side(StorageSource source, const Arguments& given);

/// A request for a storage, resolved.
struct KindRequest {
  StorageRequest storage;
  DTypePtr dtype;
};
/// The layout of the device's buffer: passed, preset, found. None if `request` has it. ValueError
/// for keywords of a buffer that the kind does not have.
std::optional<Layout> second_layout(const Request& request, StorageKind kind,
                                    const Arguments& given,
                                    const std::optional<SecondLayout>& found);
/// The request of a function that imitates `given.data`, or of one that takes a shape.
KindRequest resolve_storage(const Arguments& given);
KindRequest resolve_storage_like(const StorageSource& source, const Arguments& given);
/// What of new memory is zero at first. kPadding: the elements are all written at once.
enum class Zeroed : std::uint8_t { kNothing, kPadding, kAll };
py::object allocate_storage(KindRequest&& request, Zeroed zeroed);

// Functions that tables and attributes bind, by file.

// type.cc
/// A read-only array of a side ("host" or "device"), up to date; of the axes of dims.
py::object read_array(const StorageObject& object, py::handle side, py::handle dims);
/// A writable array of a side, which is marked.
py::object write_array(const StorageObject& object, py::handle side, py::handle dims, bool whole);
/// Ends that write.
void end_write(const StorageObject& object, py::handle side);
/// (CPUStorage, GPUStorage, SoftwareManagedGPUStorage, CUDAManagedGPUStorage), once.
void set_storage_types(const py::args& classes);

// parameters.cc
/// The attribute `_parameters`.
py::object parameters_of(const StorageObject& object);
void add_parameters_type(PyObject* module);

// attributes.cc
/// The state of a SyncState object; TypeError for other objects.
std::shared_ptr<SyncState> to_sync_state(PyObject* object);

// exports.cc
void answer_request(StorageObject& object, Py_buffer& view, int flags);
void release_buffer(PyObject* self, Py_buffer* view);
PyObject* dlpack_method(PyObject* self, PyObject* const* arguments, Py_ssize_t count,
                        PyObject* names);
PyObject* dlpack_device_method(PyObject* self, PyObject*);
py::object to_numpy(const StorageObject& object);
py::object to_cupy(const StorageObject& object);
py::object make_storage_exchange_capsule();
py::object own_memory(const StorageObject& object);
/// The storage without the first indices of its dimensions.
py::object by_position(const StorageObject& object);
py::object run_kernel(const py::args& arguments);

// creation.cc
void add_storage_functions(PyObject* module);

// assign.cc
/// Adds `copyto`, from any array into any other.
void add_copyto_function(PyObject* module);

// wrapping.cc
/// The functions `as_storage` and `storage`: over memory that exists, and with a copy of it.
py::object wrap_memory(const Arguments& given);
py::object storage_from(const Arguments& given);
/// Two handles of one storage: of gridbuf.h in the capsule `given.data`, and of Python.
py::object from_c(const Arguments& given);
py::object to_c(const Arguments& given);

}  // namespace gridbuf::python::storages

#endif  // GRIDBUF_MODULES_PYTHON_STORAGE_STORAGE_H_
