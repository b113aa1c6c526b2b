// `gridbuf.Buffer` and `gridbuf.LayoutPlan`, and the functions that make and copy arrays.
//
// Key decision. Types are written against CPython's slots, because pybind11 has no words for the
// buffer protocol's flags, DLPack's C table and objects without a value. What is a plain function
// or attribute is bound by pybind11.
//
// All functions need the GIL. Long copies release it.
#ifndef GRIDBUF_MODULES_PYTHON_ARRAY_ARRAY_H_
#define GRIDBUF_MODULES_PYTHON_ARRAY_ARRAY_H_

#include "modules/python/arguments/arguments.h"

// ---- What Buffers and storages share ----
//
// The slots and attributes of both types, so that both answer alike. `Object` begins with an
// ArrayHead. For it there are
//
//   Object* object_from<Object>(PyObject*), Object::kName: "Buffer"
//   const Extents& shape_of(const Object&)
//   py::object view_of(const Object&, const IndexMap&): another object
//   py::object element_at(const Object&, const IndexMap&): an ndarray of no dimensions, on the host
//   void answer_request(Object&, Py_buffer&, int flags): all but `obj`

namespace gridbuf::python {

struct ArrayHead {
  PyObject ob_base;
  PyObject* weak_references;
  [[no_unique_address]] PythonMutex
      mutex;  // of what the object remembers; no member of Array or Storage
};

/// dlpack::describe_tensor, where `strides_elements` is a member of the object.
inline absl::Status described(ArrayHead& head, const BufferDescriptor& memory,
                              Extents& strides_elements, dlpack::DLTensor& tensor) {
  const PythonLock lock(head.mutex);
  return dlpack::describe_tensor(memory, strides_elements, tensor);
}

template <class Object>
struct ArrayType {
  static Object& of(PyObject* self) { return *reinterpret_cast<Object*>(self); }

  // ---- Attributes. ----

  static PyObject* get_shape(PyObject* self, void*) {
    return guarded([&] { return from_integers(shape_of(of(self)).span()); });
  }
  static PyObject* get_ndim(PyObject* self, void*) {
    return PyLong_FromLong(shape_of(of(self)).size());
  }
  static PyObject* get_dtype(PyObject* self, void*) {
    return Py_NewRef(of(self).dtype->numpy.ptr());
  }

  // ---- Lifetime. ----

  static PyObject* refuse_new(PyTypeObject* type, PyObject*, PyObject*) {
    PyErr_Format(PyExc_TypeError, "%s cannot be called; use %s", type->tp_name, Object::kMakers);
    return nullptr;
  }
  static void deallocate(PyObject* self) {
    PyTypeObject* const type = Py_TYPE(self);
    Object& object = of(self);
    if (PyType_IS_GC(type)) PyObject_GC_UnTrack(self);
    if (object.head.weak_references != nullptr) PyObject_ClearWeakRefs(self);
    std::destroy_at(&object);
    type->tp_free(self);
    Py_DECREF(type);
  }

  // ---- Buffer requests (PB-01 ... PB-25). The answer leads into the object, which they hold. ----

  static int get_buffer(PyObject* self, Py_buffer* view, int flags) {
    if (view == nullptr) {
      PyErr_SetString(PyExc_BufferError, "a buffer request needs a Py_buffer to fill; pass one");
      return -1;
    }
    view->obj = nullptr;  // PB-01: also on failure.
    return guarded(-1, [&] {
      answer_request(of(self), *view, flags);
      view->obj = Py_NewRef(self);
      return 0;
    });
  }

  // ---- Keys: integers, slices, None and `...`. ----

  static py::object subscript(const Object& object, std::span<const SubscriptItem> items) {
    const Extents& shape = shape_of(object);
    const absl::StatusOr<IndexMap> found = subscript_map(shape, items);
    if (!found.ok()) raise(found.status());
    const IndexMap& map = *found;
    const bool is_element = std::ssize(items) == shape.size() &&
                            std::all_of(items.begin(), items.end(), [](const SubscriptItem& item) {
                              return std::holds_alternative<std::int64_t>(item);
                            });
    if (!is_element) return view_of(object, map);
    const py::object everything = steal(PyTuple_New(0));
    return steal(PyObject_GetItem(element_at(object, map).ptr(), everything.ptr()));
  }
  static PyObject* item(PyObject* self, Py_ssize_t position) {
    return guarded([&] {
      const Extents& shape = shape_of(of(self));
      if (shape.empty()) raise_no_iteration();
      // Iteration ends with an IndexError, so it should be a cheap one.
      if (position < 0 || position >= shape[0]) {
        PyErr_SetString(PyExc_IndexError, "index out of range");
        throw PythonError();
      }
      const SubscriptItem item = static_cast<std::int64_t>(position);
      return subscript(of(self), std::span(&item, 1));
    });
  }
  static Py_ssize_t length(PyObject* self) {
    const Extents& shape = shape_of(of(self));
    if (!shape.empty()) return shape[0];
    PyErr_Format(PyExc_TypeError, "a 0-dimensional %s has no length; use size", Object::kName);
    return -1;
  }
  static PyObject* iterate(PyObject* self) {
    return guarded([&] {
      if (shape_of(of(self)).empty()) raise_no_iteration();
      return steal(PySeqIter_New(self));
    });
  }

 private:
  [[noreturn]] static void raise_no_iteration() {
    PyErr_Format(PyExc_TypeError, "a 0-dimensional %s cannot be iterated over; use %s[()]",
                 Object::kName, Object::kName);
    throw PythonError();
  }
};

}  // namespace gridbuf::python

// ---- Elements ----
//
// copy_arrays is numpy.copyto on the engine of gridbuf.transfer. NumPy decides which casts are
// allowed, and does those that gridbuf.transfer does not have. An array's fields are read last,
// after all Python code, which may give it other memory.

namespace gridbuf::python {

/// What numpy.copyto calls `casting` and `where`.
struct CopyRule {
  PyObject* casting = nullptr;  // a str that NumPy knows, borrowed; null: "unsafe"
  PyObject* mask = nullptr;     // an ndarray of bool, borrowed; null: everywhere
};

/// `numpy.copyto(target, source, casting, where)` for two ndarrays that the caller keeps alive.
/// ValueError for a target that is read-only, and for shapes that do not broadcast to the target's;
/// TypeError for a cast that the rule forbids; else NumPy's own errors and warnings; MemoryError.
/// The target is untouched after them, but for errors that NumPy raises in the middle of a cast.
void copy_arrays(PyObject* target, PyObject* source, const CopyRule& rule = {});

/// A parameter `casting`: one of numpy's five words; null if it was not given. TypeError and
/// ValueError for other objects.
PyObject* to_casting(PyObject* object);

/// TypeError unless `casting`, a str that NumPy knows or null for "unsafe", allows the cast between
/// two numpy.dtype objects.
void check_cast(PyObject* from, PyObject* to, PyObject* casting);

/// Copies elements between views of one shape and item size; of types with gaps, their `parts`.
/// Each block must be kept alive by the caller.
void copy_memory(std::byte* target_block, const StridedView& target, const std::byte* source_block,
                 const StridedView& source, const ElementParts* parts = nullptr);

/// Whether other threads get the GIL while the elements are written.
bool is_long_copy(const StridedView& target);

/// Writes `element` (of the view's item size) to every element; of types with gaps, their `parts`
/// alone. The caller keeps the block alive.
void fill_memory(std::byte* target_block, const StridedView& target, const std::byte* element,
                 const ElementParts* parts = nullptr);

/// Whether the elements of the two types are the same bytes.
bool is_same_type(const DTypePtr& a, const DTypePtr& b);

// ---- Plans ----

// Each add_… function adds its part to the extension's module, once.

void add_plan_type(PyObject* module);

/// A new `gridbuf.LayoutPlan`: an immutable value, pickled as the request that made it.
py::object make_plan_object(const Layout& layout);

/// The keywords that make this layout for its shape and item size: what a pickle holds.
py::object pickled_parameters(const Layout& layout);

// ---- Buffer ----
//
// Memory with its meaning: an Array and its dtype. A Buffer exists only
// complete, cannot be changed, and holds nothing that could lead back to it: it needs no cycle
// collection. A view is a Buffer with a share in the same memory that holds the Buffer of the
// whole allocation, its `base`. Exports hold a share in the memory; only the buffer protocol holds
// the object, into which its consumers have pointers.

void add_buffer_type(PyObject* module);

bool is_buffer(PyObject* object);

/// The parts of a Buffer. They live while it does. Require is_buffer(object).
const Array& array_in(PyObject* buffer);
const DTypePtr& dtype_of(PyObject* buffer);

/// A new Buffer in new memory; that of a device on the thread's current stream. MemoryError, naming
/// all that was asked for; DeviceUnavailableError.
py::object allocate_buffer(const Layout& layout, const DTypePtr& dtype,
                           const ArrayOptions& options);

/// Memory of another library in row-major, column-major or any other order, without a halo.
inline Array foreign_array(BufferDescriptor&& memory, const Dims& dims,
                           const ArrayInfo& info = {}) {
  const StridedView& view = memory.view;
  const Layout layout(view, layout_of(view.shape, view.strides_bytes), 1, Extents(view.ndim(), 0),
                      dims, Halo());
  return Array(std::move(memory), layout, info);
}
/// A read-only view, for restoring one.
py::object readonly_view(PyObject* buffer);

/// A new Buffer with the same parameters and elements, in memory of kind `kind`.
py::object copy_of(PyObject* buffer, MemoryKind kind);

/// An ndarray over the buffer's elements; its base is the buffer. Waits for what a device still
/// does to them. GTNoSuchBufferError for memory that the host does not read.
py::object ndarray_of(PyObject* buffer);

/// Copies all elements between Buffers of one shape and item size, in any memory.
/// What the host reads has been written at return; between two Buffers of a device the copy is
/// enqueued on the target's stream.
void copy_buffer(PyObject* target, PyObject* source);

/// Whether gridbuf laid the memory out: then the layout of the whole allocation is its plan.
bool has_plan(PyObject* buffer);

/// The purpose of the Buffer of a storage: its parameters alone; to read it now, so that it is
/// brought up to date; or to export it, so that the storage also watches it.
enum class Purpose : std::uint8_t { kParameters, kReading, kSharing };

/// Of modules/python/storage.
bool is_storage(PyObject* object);
/// The Buffer over the memory of a storage on a side, or on the other side if that is all there is.
/// Requires is_storage(storage).
py::object side_buffer(PyObject* storage, Side side, Purpose purpose);

/// Entries per dimension, in the order of annotations: I, J, K, then data dimensions by number.
Extents in_annotation_order(const Dims& dims, const Extents& entries);

/// The aligned index in that order.
Extents origin_of(const Array& array);

}  // namespace gridbuf::python

// What the implementation files share.
namespace gridbuf::python {

struct BufferObject {
  static constexpr char kName[] = "Buffer";
  static constexpr char kMakers[] = "gridbuf.allocate(shape, dtype, ...)";

  ArrayHead head;
  py::object root;  // the Buffer of the whole allocation; none in that one itself
  bool adopted;     // the memory is not ours
  DTypePtr dtype;
  Array array;
  Extents strides_elements;  // what a DLPack tensor that owns nothing points to; filled when asked
};

BufferObject* object_of(PyObject* buffer);
PyTypeObject* buffer_type();

inline PyObject* self_of(const BufferObject& buffer) {
  return const_cast<PyObject*>(&buffer.head.ob_base);
}

/// The Buffer of the whole allocation.
inline const BufferObject& whole(const BufferObject& buffer) {
  return buffer.root ? *object_of(buffer.root.ptr()) : buffer;
}

/// A new object, complete after `construct(object)`, which makes all members and may throw.
template <class Object, class Construct>
py::object make_in_place(PyTypeObject* type, const Construct& construct) {
  Object* const made =
      PyType_IS_GC(type) ? PyObject_GC_New(Object, type) : PyObject_New(Object, type);
  PyObject* const object = steal(reinterpret_cast<PyObject*>(made)).release().ptr();
  try {
    construct(made);
  } catch (...) {
    type->tp_free(object);
    Py_DECREF(type);
    throw;
  }
  if (PyType_IS_GC(type)) PyObject_GC_Track(object);
  return steal(object);
}

/// A new Buffer of the array that `make` returns, which is made in its place: an array has nine
/// lists, and moving it takes as long as a malloc. `root` is borrowed, and null for a whole
/// allocation.
template <class Make>
py::object new_buffer(const DTypePtr& dtype, PyObject* root, const Make& make) {
  return make_in_place<BufferObject>(buffer_type(), [&](BufferObject* buffer) {
    ::new (&buffer->array) Array(make());
    // Nothing below can fail.
    buffer->head.weak_references = nullptr;
    std::construct_at(&buffer->head.mutex);
    std::construct_at(&buffer->root, share(root));
    buffer->adopted = false;
    std::construct_at(&buffer->dtype, dtype);
    std::construct_at(&buffer->strides_elements);
  });
}

/// A Buffer over memory that is not gridbuf's. `keep_alive`, if not null, is referred to until the
/// Buffer, its views and all that was exported from them are gone; the last of them releases it on
/// its own thread, see `share_object`.
template <class Make>
py::object adopt_buffer(const DTypePtr& dtype, PyObject* keep_alive, const Make& make) {
  py::object made = new_buffer(dtype, nullptr, make);
  BufferObject& buffer = *object_of(made.ptr());
  buffer.array.set_owner(share_object(buffer.array.memory().owner, keep_alive));
  buffer.adopted = true;
  return made;
}

inline const Extents& shape_of(const BufferObject& buffer) { return buffer.array.shape(); }
void answer_request(BufferObject& buffer, Py_buffer& view, int flags);
py::object view_of(const BufferObject& buffer, const IndexMap& map);
/// An element of the device comes to the host, as NumPy's scalars are of the host.
py::object element_at(const BufferObject& buffer, const IndexMap& map);

/// A view of `source` through `map`: memory, names and aligned index follow.
py::object view_through(PyObject* source, const IndexMap& map, bool readonly = false);
/// What `__reduce_ex__` returns.
py::object reduced(PyObject* self, std::int64_t protocol);

}  // namespace gridbuf::python

// ---- Requests ----
//
// Every function that allocates looks each parameter up in this order: what the caller passed, the
// preset, the array to be imitated (a `Source`), the fallback.
//
// Key decision. "Not given" is a null pointer and nothing else: `device=None` means the host and
// overrides the "gpu" of a preset. For the other parameters None means that nothing was passed
// (storage spec 3.2). `memory` and `device` that contradict each other are a ValueError.

namespace gridbuf::python {

/// What was passed to a function that makes or wraps arrays or storages: borrowed, null if not
/// given. Each function has some of these parameters.
struct Arguments {
  PyObject* shape = nullptr;
  PyObject* data = nullptr;  // to be imitated, copied or wrapped
  PyObject* fill_value = nullptr;
  PyObject* dtype = nullptr;
  PyObject* backend = nullptr;
  PyObject* device = nullptr;
  PyObject* layout = nullptr;
  PyObject* alignment_size = nullptr;
  PyObject* aligned_index = nullptr;
  PyObject* dims = nullptr;
  PyObject* populate = nullptr;
  PyObject* memory = nullptr;  // of plain arrays and buffers alone
  PyObject* halo = nullptr;    // of storages alone, and what follows
  PyObject* lower = nullptr;
  PyObject* managed = nullptr;
  PyObject* device_data = nullptr;
  PyObject* device_layout = nullptr;
  PyObject* device_alignment_size = nullptr;
  PyObject* device_defaults = nullptr;
  PyObject* sync_state = nullptr;
  PyObject* copy = nullptr;
};

using ArrayParameter = Parameter<Arguments>;
inline constexpr ArrayParameter kShape{"shape", &Arguments::shape};
inline constexpr ArrayParameter kData{"data", &Arguments::data};
inline constexpr ArrayParameter kFillValue{"fill_value", &Arguments::fill_value};
inline constexpr ArrayParameter kDtype{"dtype", &Arguments::dtype};

template <std::size_t first, std::size_t others>
consteval std::array<ArrayParameter, first + others> joined(
    const ArrayParameter (&parameters)[first], const ArrayParameter (&more)[others]) {
  std::array<ArrayParameter, first + others> all{};
  std::ranges::copy(parameters, all.begin());
  std::ranges::copy(more, all.begin() + first);
  return all;
}

/// The keywords of plain arrays, buffers and storages; all of plain arrays and buffers; all of
/// storages.
inline constexpr ArrayParameter kKeywords[] = {{"backend", &Arguments::backend},
                                               {"device", &Arguments::device},
                                               {"layout", &Arguments::layout},
                                               {"alignment_size", &Arguments::alignment_size},
                                               {"aligned_index", &Arguments::aligned_index},
                                               {"dims", &Arguments::dims},
                                               {"populate", &Arguments::populate}};
inline constexpr auto kArrayKeywords = joined(kKeywords, {{"memory", &Arguments::memory}});
inline constexpr auto kStorageKeywords =
    joined(kKeywords, {{"halo", &Arguments::halo},
                       {"lower", &Arguments::lower},
                       {"managed", &Arguments::managed},
                       {"defaults", &Arguments::backend},  // an alias
                       {"device_layout", &Arguments::device_layout},
                       {"device_alignment_size", &Arguments::device_alignment_size},
                       {"device_defaults", &Arguments::device_defaults},
                       {"memory", &Arguments::memory}});

/// The signature of a function of those keywords, after the positional parameters and others.
template <std::size_t first, std::size_t others>
consteval Signature<Arguments, first + others> signature_of(
    const char* function, const ArrayParameter (&leading)[first],
    const std::array<ArrayParameter, others>& keywords, int required = first - 1,
    int positional = first) {
  Signature<Arguments, first + others> signature{function, positional, required, {}};
  std::ranges::copy(leading, signature.parameters.begin());
  std::ranges::copy(keywords, signature.parameters.begin() + first);
  return signature;
}

/// Those of the functions that make new arrays, or new storages.
template <const auto& keywords>
struct Creation {
  static constexpr auto kEmpty = signature_of("empty", {kShape, kDtype}, keywords);
  static constexpr auto kZeros = signature_of("zeros", {kShape, kDtype}, keywords);
  static constexpr auto kOnes = signature_of("ones", {kShape, kDtype}, keywords);
  static constexpr auto kFull = signature_of("full", {kShape, kFillValue, kDtype}, keywords);
  static constexpr auto kEmptyLike = signature_of("empty_like", {kData, kDtype}, keywords);
  static constexpr auto kZerosLike = signature_of("zeros_like", {kData, kDtype}, keywords);
  static constexpr auto kOnesLike = signature_of("ones_like", {kData, kDtype}, keywords);
  static constexpr auto kFullLike =
      signature_of("full_like", {kData, kFillValue, kDtype}, keywords);
};

/// Whether a parameter for which None means "not given" was passed.
inline bool is_given(PyObject* parameter) { return parameter != nullptr && parameter != Py_None; }

/// ValueError, in the words of the parameter, for an alignment out of bounds.
void check_alignment_size(std::int64_t bytes);

/// What an imitated array has: a request for one like it. Lists that are empty are not known.
struct Source {
  DTypePtr dtype;
  LayoutRequest like;
  MemoryKind memory = MemoryKind::kHost;
};

/// What `data` has: a Buffer, an ndarray, or whatever numpy.asarray takes. `array`, if not null,
/// receives the ndarray through which its elements can be read; none for a Buffer that the host
/// cannot read.
Source source_of(PyObject* data, py::object* array = nullptr);

/// The names that `object` declares: `__gt_dims__` (an attribute, or a method as it was once
/// proposed), else a `dims` attribute whose names are all valid. Nothing if it declares none.
/// ValueError for a `__gt_dims__` that is wrong.
std::optional<Dims> declared_dims(PyObject* object, int ndim);

/// The names of a plain array's buffer; nothing unless it shows one whole Buffer. Requires an
/// ndarray.
std::optional<Dims> dims_behind(PyObject* ndarray);

/// A request for memory, resolved.
struct Request {
  Layout layout;  // with names; its halo is empty if there is none
  DTypePtr dtype;
  bool populate = false;
  MemoryKind memory = MemoryKind::kHost;
  MemoryResource* resource = nullptr;  // of memory="shared"
};

/// A halo: an entry per dimension, each an integer (both ends) or a pair (lower, upper), or a dict
/// from names to entries, none for the others. TypeError
/// for other kinds, and for the three entries that every halo once had; ValueError for what does
/// not fit the shape.
Halo to_halo(PyObject* object, const Dims& dims, const Extents& shape);

/// Whether `device` asks for the GPU; nothing if it was not given. None asks for the host.
std::optional<bool> wants_gpu(PyObject* device);

/// The preset that the keyword names; nothing if it was not given.
std::optional<Preset> preset_of(const Arguments& given);

/// The request of a function that imitates `given.data`, or of one that takes a shape.
Request resolve(const Arguments& given);

/// The request of a function that imitates `source`.
Request resolve_like(const Source& source, const Arguments& given);

/// `allocate`, `plan`, and the functions that make plain arrays.
void add_creation_functions(PyObject* module);
/// Presets and `get_dims`.
void add_name_functions(PyObject* module);

}  // namespace gridbuf::python

#endif  // GRIDBUF_MODULES_PYTHON_ARRAY_ARRAY_H_
