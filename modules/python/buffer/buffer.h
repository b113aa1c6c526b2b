// `gridbuf.Buffer`, and the functions that make, import and copy arrays.
//
// Key decision. The type is written against CPython's slots: buffer requests, `__dlpack__` and the
// functions that make small arrays take less time than a call through pybind11 (benchmarks
// `create-numpy`, `hand-over` and `subscript`). What is not hot is bound by pybind11.
//
// All functions need the GIL. Long copies release it.
#ifndef GRIDBUF_MODULES_PYTHON_BUFFER_BUFFER_H_
#define GRIDBUF_MODULES_PYTHON_BUFFER_BUFFER_H_

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
py::object copy_of(PyObject* buffer, DeviceType kind);

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
py::object side_buffer(PyObject* storage, DeviceType side, Purpose purpose);

/// The keywords of `__dlpack__`, from a vectorcall. TypeError; ValueError.
dlpack::ExportRequest to_export_request(PyObject* const* arguments, Py_ssize_t count,
                                        PyObject* keywords);
/// What `__dlpack__` of the buffer returns.
py::object export_dlpack(PyObject* buffer, const dlpack::ExportRequest& request);
/// A capsule over memory as it was negotiated, without a copy. Nothing is pending on it.
py::object export_capsule(const BufferDescriptor& memory, const dlpack::ExportPlan& plan);

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
  // The last buffer request that was granted, and its answer: the object does not change, so it is
  // the answer to the next request with these flags, and most are the same. Beyond every int: none
  // yet.
  std::int64_t granted_flags;
  Py_buffer granted;  // without its obj
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

/// A new object of a type that PyObject_Free frees, complete after `construct(object)`, which may
/// throw.
template <class Object, class Construct>
py::object make_in_place(PyTypeObject* type, const Construct& construct) {
  Object* const object = PyObject_New(Object, type);
  if (object == nullptr) throw PythonError();
  try {
    construct(object);
  } catch (...) {
    PyObject_Free(object);
    Py_DECREF(type);
    throw;
  }
  return steal(reinterpret_cast<PyObject*>(object));
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
    buffer->granted_flags = std::numeric_limits<std::int64_t>::min();
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
py::object view_of(const BufferObject& buffer, const IndexMap& map);
/// An element of the device comes to the host, as NumPy's scalars are of the host.
py::object element_at(const BufferObject& buffer, const IndexMap& map);

/// The answer to a buffer request that can be met, but for the owner (PB-01 ... PB-25).
Py_buffer answer_of(const BufferDescriptor& memory, int flags);

// Methods, by file.

// interfaces.cc
// The values of the attributes. AttributeError where the interface cannot describe the memory.
py::object make_array_interface(const BufferObject& buffer);
py::object make_array_struct(const BufferObject& buffer);
py::object make_cuda_array_interface(const BufferObject& buffer);
py::object make_data_interface(const BufferObject& buffer);

// hot/buffer_dlpack.cc
PyObject* dlpack_method(PyObject* self, PyObject* const* arguments, Py_ssize_t count,
                        PyObject* keywords);
PyObject* dlpack_device_method(PyObject* self, PyObject*);
/// The capsule of DLPack's C exchange table, of which there is one in a process (DX-01, DX-02).
py::object make_exchange_capsule();

// memory.cc
/// Waits until a device has done with memory that the host reads as well. Nothing for host memory.
void wait_for_host(const BufferObject& buffer);
/// Orders the work pending on the memory before a consumer's work on an export (DP-18, DP-24).
void order_pending(const BufferObject& buffer, const dlpack::ExportPlan& plan);
/// An error if the memory is the emulated device's and that is switched off: then no consumer may
/// take it for a GPU's.
absl::Status check_device_is_on(const BufferObject& buffer);
/// Whether the memory is the emulated device's.
bool is_emulated(const BufferObject& buffer);

// views.cc
/// A view of `source` through `map`: memory, names and aligned index follow.
py::object view_through(PyObject* source, const IndexMap& map, bool readonly = false);
/// What `__reduce_ex__` returns.
py::object reduced(PyObject* self, std::int64_t protocol);

// attributes.cc
void add_buffer_attributes(PyObject* type);

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

/// The keyword-only parameters as passed: borrowed, null if not given.
struct Keywords {
  PyObject* backend = nullptr;
  PyObject* device = nullptr;
  PyObject* layout = nullptr;
  PyObject* alignment_size = nullptr;
  PyObject* aligned_index = nullptr;
  PyObject* dims = nullptr;
  PyObject* populate = nullptr;
  PyObject* memory = nullptr;
  PyObject* halo = nullptr;  // Of storages alone.
};

/// The names of those that plain arrays and buffers have, in the order of `Keywords`.
inline constexpr const char* kKeywordNames[] = {
    "backend", "device", "layout", "alignment_size", "aligned_index", "dims", "populate", "memory"};

/// The keywords from their values in the order of kKeywordNames.
Keywords to_keywords(std::span<PyObject* const> values);

/// Whether a parameter for which None means "not given" was passed.
inline bool is_given(PyObject* parameter) { return parameter != nullptr && parameter != Py_None; }

/// TypeError for a keyword that no function of plain arrays or Buffers, or of storages, has. Names
/// today's spelling of an old one, and the functions that take it.
void unknown_keyword(const Signature& signature, PyObject* keyword);
void unknown_storage_keyword(const Signature& signature, PyObject* keyword);

/// ValueError, in the words of the parameter, for an alignment out of bounds.
void check_alignment_size(std::int64_t bytes);

/// What an imitated array has: a request for one like it. Lists that are empty are not known.
struct Source {
  DTypePtr dtype;
  LayoutRequest like;
  DeviceType memory = DeviceType::kHost;
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
  DeviceType memory = DeviceType::kHost;
};

/// A halo: an entry per dimension, each an integer (both ends) or a pair (lower, upper), or a dict
/// from names to entries, none for the others. TypeError
/// for other kinds, and for the three entries that every halo once had; ValueError for what does
/// not fit the shape.
Halo to_halo(PyObject* object, const Dims& dims, const Extents& shape);

/// Whether `device` asks for the GPU; nothing if it was not given. None asks for the host.
std::optional<bool> wants_gpu(PyObject* device);

/// The preset that the keyword names; nothing if it was not given.
std::optional<Preset> preset_of(const Keywords& keywords);

/// The request of a function that takes a shape. `dtype` may be null.
Request resolve(PyObject* shape, PyObject* dtype, const Keywords& keywords);

/// The request of a function that imitates `source`. `dtype` may be null.
Request resolve_like(const Source& source, PyObject* dtype, const Keywords& keywords);

// ---- Creation ----
//
// Plain arrays and storages have the same eight functions. Each is an instance of `Creation` with
// a front end:
//
//   Keywords, Request, kKeywordNames, to_keywords(values), unknown_keyword   as above
//   resolve(shape, dtype, keywords), from_data(data, dtype, keywords)        a Request
//   make_empty(request), make_zeros(request), make_filled(request, value)    the objects
//
// Key decision. A template and not a table of function pointers: the smallest `empty` takes 300 ns
// in all, and an indirect call between its steps is measurable.

/// The names of leading parameters, then those of the keywords.
template <std::size_t leading_count, std::size_t keyword_count>
constexpr std::array<const char*, leading_count + keyword_count> joined_names(
    const char* const (&leading)[leading_count], const char* const (&keywords)[keyword_count]) {
  std::array<const char*, leading_count + keyword_count> names{};
  std::copy(std::begin(leading), std::end(leading), names.begin());
  std::copy(std::begin(keywords), std::end(keywords), names.begin() + leading_count);
  return names;
}

/// TypeError for the parameter at `position`, which was not passed.
[[noreturn]] void raise_missing(const Signature& signature, int position);

/// The functions of a front end, in the form of METH_FASTCALL | METH_KEYWORDS.
template <class FrontEnd>
class Creation {
  using Keywords = typename FrontEnd::Keywords;
  using Request = typename FrontEnd::Request;
  using Resolve = Request (*)(PyObject* first, PyObject* dtype, const Keywords& keywords);
  using Make = py::object (*)(const Request& request);

 public:
  static constexpr auto kShapeNames = joined_names({"shape", "dtype"}, FrontEnd::kKeywordNames);
  static constexpr auto kDataNames = joined_names({"data", "dtype"}, FrontEnd::kKeywordNames);
  static constexpr auto kFullNames =
      joined_names({"shape", "fill_value", "dtype"}, FrontEnd::kKeywordNames);
  static constexpr auto kFullLikeNames =
      joined_names({"data", "fill_value", "dtype"}, FrontEnd::kKeywordNames);

  /// A function that sorts its arguments and calls `body` with the positional ones and the
  /// keywords. The last positional one is the dtype, null if not given; the others are required.
  template <const Signature& signature, auto body>
  static PyObject* function(PyObject*, PyObject* const* arguments, Py_ssize_t count,
                            PyObject* names) {
    constexpr int kLeading = signature.positional;
    return guarded([&] {
      PyObject* values[signature.names.size()] = {};
      sort_arguments(signature, arguments, count, names, values, FrontEnd::unknown_keyword);
      for (int i = 0; i + 1 < kLeading; ++i) {
        if (values[i] == nullptr) raise_missing(signature, i);
      }
      const Keywords keywords = FrontEnd::to_keywords(std::span(values).subspan(kLeading));
      if constexpr (kLeading == 2) {
        return body(values[0], values[1], keywords);
      } else {
        return body(values[0], values[1], values[2], keywords);
      }
    });
  }
  template <Resolve resolve, Make make>
  static py::object made(PyObject* first, PyObject* dtype, const Keywords& keywords) {
    return make(resolve(first, dtype, keywords));
  }
  template <Resolve resolve>
  static py::object filled(PyObject* first, PyObject* fill_value, PyObject* dtype,
                           const Keywords& keywords) {
    return FrontEnd::make_filled(resolve(first, dtype, keywords), fill_value);
  }
  static py::object make_ones(const Request& request) {
    return FrontEnd::make_filled(request, steal(PyLong_FromLong(1)).ptr());
  }

  static constexpr Signature kEmpty{"empty", kShapeNames, 2};
  static constexpr Signature kZeros{"zeros", kShapeNames, 2};
  static constexpr Signature kOnes{"ones", kShapeNames, 2};
  static constexpr Signature kFull{"full", kFullNames, 3};
  static constexpr Signature kEmptyLike{"empty_like", kDataNames, 2};
  static constexpr Signature kZerosLike{"zeros_like", kDataNames, 2};
  static constexpr Signature kOnesLike{"ones_like", kDataNames, 2};
  static constexpr Signature kFullLike{"full_like", kFullLikeNames, 3};

  static constexpr auto empty = function<kEmpty, made<FrontEnd::resolve, FrontEnd::make_empty>>;
  static constexpr auto zeros = function<kZeros, made<FrontEnd::resolve, FrontEnd::make_zeros>>;
  static constexpr auto ones = function<kOnes, made<FrontEnd::resolve, make_ones>>;
  static constexpr auto full = function<kFull, filled<FrontEnd::resolve>>;
  static constexpr auto empty_like =
      function<kEmptyLike, made<FrontEnd::from_data, FrontEnd::make_empty>>;
  static constexpr auto zeros_like =
      function<kZerosLike, made<FrontEnd::from_data, FrontEnd::make_zeros>>;
  static constexpr auto ones_like = function<kOnesLike, made<FrontEnd::from_data, make_ones>>;
  static constexpr auto full_like = function<kFullLike, filled<FrontEnd::from_data>>;
};

// ---- Imports ----
//
// `import_buffer` asks an object's interfaces, cheapest first (`find_memory`), checks what the
// first one says (gridbuf.interface), waits for the stream that it names, and adopts the memory as
// a Buffer that keeps the producer alive. Nothing is copied, and nothing is dereferenced before it
// is checked. A producer that raises BufferError is asked through its next interface; its first
// error is raised if all decline. All other errors are raised at once; only AttributeError means
// that the interface is missing (AI-29).
//
// Key decision: one Python object keeps foreign memory alive. A memoryview or a capsule holds a
// Py_buffer, a capsule its struct, and a dict goes with its object, as some dicts own the memory
// (numpy #31036). Only a DLPack tensor is owned by the descriptor.

struct ImportOptions {
  bool sync = true;           // wait for the stream that the producer names
  bool allow_copied = false;  // take memory that the producer copied for this import
  bool use_names = true;      // of the dimensions, as the object declares them
  bool acquired = false;      // the caller has called `acquire`, and will call `release`
  std::optional<DeviceType> side = std::nullopt;  // which entry of a `__gt_data_interface__`
  Purpose purpose = Purpose::kSharing;            // of an array of gridbuf's own
};

/// The parts of an entry of `__gt_data_interface__` that a Buffer does not have; empty: not given.
struct Meaning {
  Halo halo = {};
  py::object touch;                     // to be called after the memory was written
  std::vector<std::string> names = {};  // of the dimensions, any
  py::object dims = {};                 // the same as the object has them, with kinds
};

/// The dimensions of `meaning.names`, which must not be empty; an error for a text that is not a
/// name.
absl::StatusOr<Dims> dims_of(const Meaning& meaning, int ndim);

/// Functions to call before memory is used for a limited time, and after that; none: not given.
struct UseHooks {
  DeviceType side = DeviceType::kHost;  // of their entry
  py::object acquire;
  py::object release;
};

/// The hooks of the object's `__gt_data_interface__`: of `side`, or of the other one if it has no
/// entry there. Nothing without that interface. Errors, which begin with a rule's id, if it has no
/// entries or they are not dicts of functions.
std::optional<UseHooks> use_hooks(PyObject* object, DeviceType side);

/// A Buffer over the memory of `object`; none if it offers no interface. `dims`, which may be null,
/// is the parameter of that name; without it the names are those that the object declares.
/// Exceptions: those of the producer; TypeError, ValueError or BufferError that begin with the id
/// of a broken rule; DeviceUnavailableError for memory of a device that is not there.
/// `meaning`, if not null, receives the rest of the entry.
py::object import_or_none(PyObject* object, PyObject* dims, const ImportOptions& options,
                          Meaning* meaning = nullptr);

/// The same, with a TypeError that lists the interfaces if there is none.
py::object import_buffer(PyObject* object, PyObject* dims, const ImportOptions& options,
                         Meaning* meaning = nullptr);

/// `memoryview(object)`, which is a new object, after a check of what CPython reads unchecked.
/// Exceptions: those of the exporter; BufferError that begins with the id of a broken rule.
py::object as_memoryview(PyObject* object);
/// Makes its type. Called once, by the extension's initialisation.
void make_checked_exporter_type();

/// `numpy.asarray(object)`, which follows the pointers of a Py_buffer or an array struct only after
/// the checks of an import. Exceptions: as of import_or_none.
py::object as_ndarray(PyObject* object);

/// `object` as something whose elements the host can read by its fields: an ndarray or a Buffer; a
/// new Buffer over its memory if it is neither and offers an interface; else `object` itself.
/// `dims` is the parameter of the caller, which may be null.
py::object importable_or_same(PyObject* object, PyObject* dims);

/// A `cupy.ndarray` over a Buffer's memory, which keeps the Buffer; `sync` orders the pending work
/// on it before CuPy's current stream. DeviceUnavailableError without CuPy or a CUDA device,
/// GTNoSuchBufferError for memory of the host.
py::object make_cupy_view(const py::object& buffer, bool sync);

/// The default origin that an object declares (`__gt_origin__`, then `default_origin`, as
/// attributes or methods), in the order of annotations; nothing if it declares none.
std::optional<Extents> declared_origin(PyObject* object);

/// `as_buffer` and `as_numpy`.
void add_import_functions(PyObject* module);
/// `as_cupy`, `from_interface` and `get_origin`.
void add_front_ends(PyObject* module);
/// `allocate`, `plan`, and the functions that make plain arrays.
void add_creation_functions(PyObject* module);
/// Presets and `get_dims`.
void add_name_functions(PyObject* module);

}  // namespace gridbuf::python

// What the implementation files share.
namespace gridbuf::python {

/// A reference whose end may run a producer's code (a capsule's destructor, the release of a
/// Py_buffer). That code must find no exception set, and a pending exception must survive it
/// (DP-09).
class ShieldedRef {
 public:
  ShieldedRef() noexcept = default;
  ShieldedRef(py::object object) noexcept : object_(std::move(object)) {}
  ShieldedRef(ShieldedRef&&) noexcept = default;
  ShieldedRef& operator=(ShieldedRef&&) noexcept = default;
  ShieldedRef(const ShieldedRef&) = delete;
  ShieldedRef& operator=(const ShieldedRef&) = delete;
  ~ShieldedRef() {
    if (!object_ || PyErr_Occurred() == nullptr) return;
    const py::error_scope kept;
    object_ = py::object();
  }

  PyObject* ptr() const noexcept { return object_.ptr(); }
  explicit operator bool() const noexcept { return static_cast<bool>(object_); }

 private:
  py::object object_;
};

/// Memory that came in through one interface.
struct Foreign {
  ImportedView view = {};
  py::object dtype;        // numpy.dtype where the view's type does not say all: fields
  ShieldedRef keep_alive;  // none if view.memory.owner keeps the memory alive
  Meaning meaning = {};
};

/// (first, second): an object that keeps both alive. Null ones are left out.
py::object keep_both(PyObject* first, PyObject* second);

// descriptors.cc

/// An array interface's dict. `self` is whose buffer is meant where `data` says None; may be null.
Foreign read_array_dict(PyObject* dict, PyObject* self);
/// The same for the CUDA array interface.
Foreign read_cuda_dict(PyObject* dict, PyObject* self);
/// A `__gt_data_interface__` or a dict of that form; `side` nothing: the host's if there is one.
/// Acquires; the result's keep_alive releases when it goes. The dict is read again from `source`
/// afterwards, where it came from, as acquiring may move memory; null: it stays unchanged.
Foreign read_data_dict(PyObject* dict, PyObject* self, std::optional<DeviceType> side,
                       PyObject* source);
/// Whether the dict has an entry of a side.
bool is_data_dict(PyObject* dict);

/// The memory behind the interface; nothing if the object does not offer it.
std::optional<Foreign> through_data_interface(PyObject* object, const ImportOptions& options);
std::optional<Foreign> through_array_struct(PyObject* object, const ImportOptions& options);
std::optional<Foreign> through_array_interface(PyObject* object, const ImportOptions& options);
std::optional<Foreign> through_cuda_array_interface(PyObject* object, const ImportOptions& options);

// imports.cc

/// A Buffer over what came in; waits for its stream.
py::object adopt(Foreign foreign, PyObject* object, PyObject* dims, const ImportOptions& options);

// front_ends.cc

/// A `cupy.ndarray` as `plan` says, in memory of CuPy's current allocator, so that the user's pool
/// (CuPy's, RMM's) and its limits hold. `zeroed`: elements and padding are zeros, written on CuPy's
/// current stream. TypeError for dtypes that CuPy does not have; DeviceUnavailableError; CuPy's
/// MemoryError.
py::object make_cupy_array(const Layout& plan, const DTypeRecord& dtype, bool zeroed);
/// Writes `value` to all elements of such an array, broadcast and cast as numpy.full does.
void copy_into_cupy(PyObject* array, PyObject* value);

}  // namespace gridbuf::python

#endif  // GRIDBUF_MODULES_PYTHON_BUFFER_BUFFER_H_
