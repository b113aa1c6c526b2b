// gridbuf.python.buffer: `gridbuf.Buffer`, the functions that make, import and copy arrays.
//
// In this order: elements between arrays of the host, `Layout`, the type `Buffer`, the keywords
// of the functions that allocate, those functions, imports from other libraries, CuPy, `copyto`.
//
// All functions need the GIL. Long copies release it.

module;

#include <Python.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <new>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/status.h"

export module gridbuf.python.buffer;

import gridbuf.alloc;
import gridbuf.array;
import gridbuf.base;
import gridbuf.device;
import gridbuf.interface;
import gridbuf.interface.buffer;
import gridbuf.interface.dlpack;
import gridbuf.interface.numpy;
import gridbuf.layout;
import gridbuf.python.support;
import gridbuf.transfer;

// ---- Elements ----
//
// `copyto`, `from_array`, `storage`, an assignment to a storage and a pickle write host memory with
// copy_arrays, which is numpy.copyto on the engine of gridbuf.transfer. Overlapping arrays come out
// as if the source had been read first.
//
// Key choice. NumPy decides which casts are allowed, and gridbuf copies the bytes. gridbuf.transfer
// casts floats, and integers of 32 and 64 bits to floats. numpy.copyto does every other conversion.
//
// Arrays are ndarrays, because NumPy needs them and because their fields can be read in a few
// instructions. Fields are read last, after all Python code: it may give an array another memory.

export namespace gridbuf::python {

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

/// Copies elements between views of one shape and item size. Each block must be kept alive by the
/// caller.
void copy_memory(std::byte* target_block, const StridedView& target, const std::byte* source_block,
                 const StridedView& source);

/// Writes `element` (of the view's item size) to every element. The block likewise.
void fill_memory(std::byte* target_block, const StridedView& target, const std::byte* element);

/// Whether the elements of the two types are the same bytes.
bool is_same_type(const DTypePtr& a, const DTypePtr& b);

}  // namespace gridbuf::python

// ---- Layout ----
//
// A plan says where every element is, without any memory. `gridbuf.plan(...)` and `Buffer.plan`
// return one. The object is an immutable value, and pickled as the request that made it, so that an
// unpickled plan has been checked like any other.

export namespace gridbuf::python {

/// Adds the class, and the function that unpickles it, to `module`. Called once, by the extension's
/// initialisation.
void add_plan_type(PyObject* module);

/// A new `gridbuf.LayoutPlan`. The layout has names.
py::object make_plan_object(const Layout& layout);

}  // namespace gridbuf::python

// ---- Buffer ----
//
// A Buffer is memory with its meaning: the descriptor from which every interface is
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

export namespace gridbuf::python {

/// How the memory of a Buffer came about; a view has the info of its base.
struct MemoryInfo {
  BlockFacts facts = {};
  std::int64_t allocation_bytes = 0;  // what the block costs, placement included; 0: not known
};
/// Of memory that is not gridbuf's; `stream` orders work on it, 0: there is none.
inline MemoryInfo adopted_memory(std::string_view resource_name, const Device& device,
                                 StreamHandle stream = 0) {
  return {.facts = {.resource_name = resource_name, .device = device, .stream = stream}};
}

/// Adds the class to `module`. Called once, by the extension's initialisation.
void add_buffer_type(PyObject* module);

bool is_buffer(PyObject* object);

/// The parts of a Buffer. They live while it does. Require is_buffer(object).
const Array& array_in(PyObject* buffer);
const MemoryInfo& info_of(PyObject* buffer);
const DTypePtr& dtype_of(PyObject* buffer);

/// A new Buffer in new memory; that of a device on the thread's current stream. MemoryError, naming
/// all that was asked for; DeviceUnavailableError.
py::object allocate_buffer(const Layout& layout, const DTypePtr& dtype,
                           const ArrayOptions& options);

/// A Buffer over memory that is not gridbuf's. `keep_alive`, if not null, is referred to until the
/// Buffer, its views and all that was exported from them are gone; the last of them releases it on
/// its own thread, see `share_object`.
py::object adopt_buffer(Array&& array, const DTypePtr& dtype, PyObject* keep_alive,
                        const MemoryInfo& info);
/// The same with the array that `make_array` returns, which is made in its place; nothing else is
/// kept alive. `make_array` must not throw.
template <class MakeArray>
py::object adopt_buffer_of(const DTypePtr& dtype, const MemoryInfo& info,
                           const MakeArray& make_array);

/// Memory of another library in row-major, column-major or any other order, without a halo.
inline Array foreign_array(const BufferDescriptor& memory, const Dims& dims) {
  const StridedView& view = memory.view;
  return {.memory = memory,
          .layout = Layout(view, layout_of(view.shape, view.strides_bytes), 1,
                           Extents(view.ndim(), 0), dims, Halo())};
}

/// A read-only view, for restoring one.
py::object readonly_view(PyObject* buffer);

/// A new Buffer with the same parameters and elements, in memory of kind `kind`.
py::object copy_of(PyObject* buffer, MemoryKind kind);

/// An ndarray over the buffer's elements; its base is the buffer. Waits for what a device still
/// does to them. GTNoSuchBufferError for memory that the host does not read.
py::object ndarray_of(PyObject* buffer);

/// Copies all elements between Buffers of one shape and item size, in whatever memory they lie.
/// What the host reads has been written at return; between two Buffers of a device the copy is
/// enqueued on the target's stream.
void copy_buffer(PyObject* target, PyObject* source);

/// Whether gridbuf laid the memory out: then the layout of the whole allocation is its plan.
bool has_plan(PyObject* buffer);

/// The purpose of the Buffer of a storage: its parameters alone; to read it now, so that it is
/// brought up to date; or to export it, so that the storage also watches it.
enum class Purpose : std::uint8_t { kParameters, kReading, kSharing };

/// The Buffer over the memory of a storage on a side, or on the other side if that is all there is;
/// none for every object that is not a storage.
py::object buffer_of_storage(PyObject* object, DeviceType side, Purpose purpose);

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
Extents origin_of(const Array& array);

}  // namespace gridbuf::python

// What the implementation files share.
namespace gridbuf::python {

struct BufferObject {
  PyObject ob_base;
  PyObject* weak_references;
  PyObject* root;  // the Buffer of the whole allocation; null in that one itself
  bool adopted;    // the memory is not ours
  DTypePtr dtype;
  MemoryInfo info;
  Array array;
  Extents strides_elements;  // what a DLPack tensor that owns nothing points to; filled when asked
  // The last buffer request that was granted, and its answer: the object does not change, so it is
  // the answer to the next request with these flags, and most are the same. Beyond every int: none
  // yet.
  std::int64_t granted_flags;
  Py_buffer granted;  // without its obj
};

BufferObject* object_of(PyObject* buffer);

inline PyObject* self_of(const BufferObject& buffer) {
  return const_cast<PyObject*>(&buffer.ob_base);
}

/// The Buffer of the whole allocation.
inline const BufferObject& whole(const BufferObject& buffer) {
  return buffer.root == nullptr ? buffer : *reinterpret_cast<const BufferObject*>(buffer.root);
}

/// A new object whose array is not there yet. `root` is borrowed, and null for a whole allocation.
py::object new_object(const DTypePtr& dtype, PyObject* root, const MemoryInfo& info);

/// A new Buffer with the array that `make_array` returns. It is made in its place, because it is
/// four kilobytes of which a few words are in use. `make_array` must not throw.
template <class MakeArray>
py::object new_buffer(const DTypePtr& dtype, PyObject* root, const MemoryInfo& info,
                      const MakeArray& make_array) {
  static_assert(noexcept(make_array()));
  py::object object = new_object(dtype, root, info);
  ::new (static_cast<void*>(&object_of(object.ptr())->array)) Array(make_array());
  return object;
}

template <class MakeArray>
py::object adopt_buffer_of(const DTypePtr& dtype, const MemoryInfo& info,
                           const MakeArray& make_array) {
  py::object buffer = new_buffer(dtype, nullptr, info, make_array);
  object_of(buffer.ptr())->adopted = true;
  return buffer;
}

// Slots and methods, by file.

// exports.cc
int get_buffer(PyObject* self, Py_buffer* view, int flags);

// interfaces.cc
// The values of the attributes. AttributeError where the interface cannot describe the memory.
py::object make_array_interface(const BufferObject& buffer);
py::object make_array_struct(const BufferObject& buffer);
py::object make_cuda_array_interface(const BufferObject& buffer);
py::object make_data_interface(const BufferObject& buffer);

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

// views.cc
PyObject* subscript_slot(PyObject* self, PyObject* key);
PyObject* item_slot(PyObject* self, Py_ssize_t position);
Py_ssize_t length_slot(PyObject* self);
/// A view of `source` through `map`: memory, names and aligned index follow.
py::object view_through(PyObject* source, const IndexMap& map, bool readonly = false);

// copies.cc
/// What `__reduce_ex__` returns.
py::object reduced(PyObject* self, std::int64_t protocol);

// attributes.cc
void add_buffer_attributes(PyObject* type);

}  // namespace gridbuf::python

// ---- Requests ----
//
// Every function that allocates takes the same parameters, and each of them is looked up
// in the same order: what the caller passed, else what the preset gives, else what the array to be
// imitated has, else the fallback. This module is that order, written once.
//
// Key choice. "Not given" is a null pointer and nothing else. So `device=None`, which means the
// host, overrides the "gpu" of a preset, while for the other parameters None means that nothing was
// passed (storage spec 3.2). What an imitated array has is found out before, as a `Source`: a
// Buffer (or a plain array over one) gives all of its parameters, an array that is not ours gives
// the order of its strides and the names that it declares.
//
// Where the memory lies is one answer out of two keywords: `memory` names a kind, `device` says
// host or GPU, and a preset knows a device as well. Two that contradict each other are a
// ValueError; what has not been said by either is not guessed from the machine.

export namespace gridbuf::python {

inline constexpr const char* kBackendName = "backend";

/// The keyword-only parameters as passed: borrowed, null if not given.
struct Keywords {
  PyObject* backend = nullptr;  // Storages call it defaults.
  PyObject* device = nullptr;
  PyObject* layout = nullptr;
  PyObject* alignment_size = nullptr;
  PyObject* aligned_index = nullptr;
  PyObject* dims = nullptr;
  PyObject* populate = nullptr;
  PyObject* memory = nullptr;
  PyObject* halo = nullptr;                // Of storages alone.
  const char* preset_name = kBackendName;  // What messages call `backend`.
};

/// The names of those that plain arrays and buffers have, in the order of `Keywords`.
inline constexpr const char* kKeywordNames[] = {
    "backend", "device", "layout", "alignment_size", "aligned_index", "dims", "populate", "memory"};
inline constexpr int kKeywordCount = 8;

/// The keywords from their values in the order of kKeywordNames. Requires kKeywordCount of them.
Keywords to_keywords(std::span<PyObject* const> values);

/// What to say of a keyword that no allocation function has: names today's spelling of an old one,
/// and the door that takes it. Sets a TypeError and throws.
void unknown_keyword(const Signature& signature, PyObject* keyword);
/// The same for the functions of storages.
void unknown_storage_keyword(const Signature& signature, PyObject* keyword);

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
};

/// A halo: an entry per dimension, each an integer (both ends) or a pair (lower, upper). TypeError
/// for other kinds, and for the three entries that every halo once had; ValueError for what does
/// not fit the shape.
Halo to_halo(PyObject* object, const Extents& shape);

/// Whether `device` asks for the GPU; nothing if it was not given. None asks for the host.
std::optional<bool> wants_gpu(PyObject* device);

/// The preset that the keyword names; nothing if it was not given.
std::optional<Preset> preset_of(const Keywords& keywords);

/// The request of a function that takes a shape. `dtype` may be null.
Request resolve(PyObject* shape, PyObject* dtype, const Keywords& keywords);

/// The request of a function that imitates `source`. `dtype` may be null.
Request resolve_like(const Source& source, PyObject* dtype, const Keywords& keywords);

}  // namespace gridbuf::python

// ---- Creation ----
//
// Both doors of the library, plain arrays and storages, offer the same eight functions.
// They differ in the keywords they take and in what they make; the order of the parameters, which
// of them must be there and how that is said do not differ. A door says the former as a class, and
// Creation<Door> is the functions.
//
// Key choice. A template over the door and not a table of function pointers: the smallest `empty`
// takes some 300 ns in all, and an indirect call between its steps would be seen. A door has
//
//   Keywords, Request                        what its keywords are read into, and a request
//   resolved kKeywordNames                            the array of the names of its keywords
//   to_keywords(values), unknown_keyword     as in the section Requests
//   resolve(shape, dtype, keywords)          a Request; likewise from_data(data, dtype, keywords)
//   make_empty(request), make_zeros(request), make_filled(request, fill_value)   the objects
//
// and nothing else.

export namespace gridbuf::python {

/// The names of leading parameters, then those of the keywords that all functions of a door share.
template <std::size_t leading_count, std::size_t keyword_count>
constexpr std::array<const char*, leading_count + keyword_count> joined_names(
    const char* const (&leading)[leading_count], const char* const (&keywords)[keyword_count]) {
  std::array<const char*, leading_count + keyword_count> names{};
  std::copy(std::begin(leading), std::end(leading), names.begin());
  std::copy(std::begin(keywords), std::end(keywords), names.begin() + leading_count);
  return names;
}

/// The arguments of one call, sorted: leading parameters, the last of them the dtype, and keywords.
template <class Door>
class CreationArguments {
 public:
  CreationArguments(const Signature& signature, PyObject* const* arguments, Py_ssize_t count,
                    PyObject* keyword_names)
      : signature_(signature), leading_(signature.names.size() - kKeywordCount) {
    const std::span<PyObject*> values(values_, signature.names.size());
    sort_arguments(signature, arguments, count, keyword_names, values, Door::unknown_keyword);
    keywords_ = Door::to_keywords(values.subspan(leading_));
  }

  /// The first parameter, and the second of those functions that have one before the dtype.
  /// TypeError if it was not passed.
  PyObject* first() const { return required(0); }
  PyObject* second() const { return required(1); }
  /// Null if not given.
  PyObject* dtype() const { return values_[leading_ - 1]; }
  const typename Door::Keywords& keywords() const { return keywords_; }

 private:
  static constexpr std::size_t kKeywordCount = std::size(Door::kKeywordNames);
  static constexpr std::size_t kMostLeading = 3;

  PyObject* required(std::size_t position) const {
    PyObject* const value = values_[position];
    if (value != nullptr) return value;
    raise(ErrorClass::kType, std::string(signature_.function) + "() is underdetermined: " +
                                 signature_.names[position] + " is missing; pass it as argument " +
                                 std::to_string(position + 1));
  }

  const Signature& signature_;
  std::size_t leading_;
  PyObject* values_[kMostLeading + kKeywordCount] = {};
  typename Door::Keywords keywords_;
};

/// The functions of a door, in the form of METH_FASTCALL | METH_KEYWORDS.
template <class Door>
class Creation {
 public:
  using Request = typename Door::Request;
  using Arguments = CreationArguments<Door>;

  static constexpr auto kShapeNames = joined_names({"shape", "dtype"}, Door::kKeywordNames);
  static constexpr auto kDataNames = joined_names({"data", "dtype"}, Door::kKeywordNames);

  static PyObject* empty(PyObject*, PyObject* const* arguments, Py_ssize_t count, PyObject* names) {
    static constexpr Signature kSignature{"empty", kShapeNames, 2};
    return with_shape<Door::make_empty>(kSignature, arguments, count, names);
  }
  static PyObject* zeros(PyObject*, PyObject* const* arguments, Py_ssize_t count, PyObject* names) {
    static constexpr Signature kSignature{"zeros", kShapeNames, 2};
    return with_shape<Door::make_zeros>(kSignature, arguments, count, names);
  }
  static PyObject* ones(PyObject*, PyObject* const* arguments, Py_ssize_t count, PyObject* names) {
    static constexpr Signature kSignature{"ones", kShapeNames, 2};
    return with_shape<make_ones>(kSignature, arguments, count, names);
  }
  static PyObject* full(PyObject*, PyObject* const* arguments, Py_ssize_t count, PyObject* names) {
    static constexpr auto kNames =
        joined_names({"shape", "fill_value", "dtype"}, Door::kKeywordNames);
    static constexpr Signature kSignature{"full", kNames, 3};
    return filled<Door::resolve>(kSignature, arguments, count, names);
  }

  static PyObject* empty_like(PyObject*, PyObject* const* arguments, Py_ssize_t count,
                              PyObject* names) {
    static constexpr Signature kSignature{"empty_like", kDataNames, 2};
    return with_data<Door::make_empty>(kSignature, arguments, count, names);
  }
  static PyObject* zeros_like(PyObject*, PyObject* const* arguments, Py_ssize_t count,
                              PyObject* names) {
    static constexpr Signature kSignature{"zeros_like", kDataNames, 2};
    return with_data<Door::make_zeros>(kSignature, arguments, count, names);
  }
  static PyObject* ones_like(PyObject*, PyObject* const* arguments, Py_ssize_t count,
                             PyObject* names) {
    static constexpr Signature kSignature{"ones_like", kDataNames, 2};
    return with_data<make_ones>(kSignature, arguments, count, names);
  }
  static PyObject* full_like(PyObject*, PyObject* const* arguments, Py_ssize_t count,
                             PyObject* names) {
    static constexpr auto kNames =
        joined_names({"data", "fill_value", "dtype"}, Door::kKeywordNames);
    static constexpr Signature kSignature{"full_like", kNames, 3};
    return filled<Door::from_data>(kSignature, arguments, count, names);
  }

  using Make = py::object (*)(const Request&);
  using Resolve = Request (*)(PyObject* first, PyObject* dtype, const typename Door::Keywords&);

  /// (shape, dtype=float64, *, keywords), for functions beside these.
  template <Make make>
  static PyObject* with_shape(const Signature& signature, PyObject* const* arguments,
                              Py_ssize_t count, PyObject* names) {
    return made<Door::resolve, make>(signature, arguments, count, names);
  }

 private:
  /// (data, dtype=None, *, keywords).
  template <Make make>
  static PyObject* with_data(const Signature& signature, PyObject* const* arguments,
                             Py_ssize_t count, PyObject* names) {
    return made<Door::from_data, make>(signature, arguments, count, names);
  }

  template <Resolve resolve, Make make>
  static PyObject* made(const Signature& signature, PyObject* const* arguments, Py_ssize_t count,
                        PyObject* names) {
    return guarded([&] {
      const Arguments given(signature, arguments, count, names);
      return make(resolve(given.first(), given.dtype(), given.keywords()));
    });
  }

  template <Resolve resolve>
  static PyObject* filled(const Signature& signature, PyObject* const* arguments, Py_ssize_t count,
                          PyObject* names) {
    return guarded([&] {
      const Arguments given(signature, arguments, count, names);
      PyObject* const first = given.first();
      PyObject* const fill_value = given.second();
      return Door::make_filled(resolve(first, given.dtype(), given.keywords()), fill_value);
    });
  }

  static py::object make_ones(const Request& request) {
    const py::object one = steal(PyLong_FromLong(1));
    return Door::make_filled(request, one.ptr());
  }
};

}  // namespace gridbuf::python

// ---- Imports ----
//
// `import_buffer` finds the cheapest interface of an object, passes what it says to that protocol's
// reader (gridbuf.interface.*), waits for the stream that it names, and adopts the memory as a
// Buffer that keeps the producer alive. Nothing is copied, and nothing is dereferenced before it
// passed.
//
// The order, cheapest first: a Buffer is itself; an ndarray's fields are read; then
// `__gt_data_interface__` (whose `acquire` must run before anything is read), DLPack's C table of
// exactly that type (DX-11), the buffer protocol, `__dlpack__`, `__array_struct__`,
// `__array_interface__`, `__cuda_array_interface__`. A producer that raises BufferError is asked
// through its next interface, and its first error is raised if all decline. A descriptor that
// breaks a rule is an error at once, as is every other exception of a getter; only AttributeError
// means that the interface is missing (AI-29).
//
// Key choice: one Python object keeps foreign memory alive. A memoryview (or a capsule) holds a
// Py_buffer, a capsule its struct, and a dict goes with its object, as some dicts own the memory
// (numpy #31036). Only a DLPack tensor is owned by the descriptor itself.

export namespace gridbuf::python {

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
};

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

/// `object` as something whose elements the host can read by its fields: an ndarray or a Buffer; a
/// new Buffer over its memory if it is neither and offers an interface; else `object` itself.
/// `dims` is the parameter of the caller, which may be null.
py::object importable_or_same(PyObject* object, PyObject* dims);

/// A `cupy.ndarray` over a Buffer's memory, which keeps the Buffer; `sync` orders what is pending
/// on it before CuPy's current stream. DeviceUnavailableError without CuPy or a CUDA device,
/// GTNoSuchBufferError for memory of the host.
py::object make_cupy_view(const py::object& buffer, bool sync);

/// The default origin that an object declares (`__gt_origin__`, then `default_origin`, as
/// attributes or methods), in the order of annotations; nothing if it declares none.
std::optional<Extents> declared_origin(PyObject* object);

/// Adds as_numpy, as_cupy, as_buffer, from_interface and get_origin to `module`.
void add_import_functions(PyObject* module);

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
/// afterwards, where it came from, as acquiring may move memory; null: it stays as it is.
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

}  // namespace gridbuf::python

// ---- CuPy ----
//
// `gridbuf.zeros(shape, device="gpu")` is a `cupy.ndarray`. Its bytes come from CuPy's current
// allocator, so that a pool that the user has set (CuPy's own, RMM) and its limits hold. Strides,
// padding and the aligned address are those of the layout plan: the array begins inside a slightly
// larger block. Buffers on a device need no CuPy. The first such call imports it.

export namespace gridbuf::python {

/// A `cupy.ndarray` as `plan` says. `zeroed`: elements and padding are zeros, written on CuPy's
/// current stream. TypeError for dtypes that CuPy does not have; DeviceUnavailableError; CuPy's own
/// MemoryError.
py::object make_cupy_array(const Layout& plan, const DTypeRecord& dtype, bool zeroed);

/// Writes `value` to all elements, broadcast and cast as numpy.full does. Requires an array of the
/// function above.
void copy_into_cupy(PyObject* array, PyObject* value);

}  // namespace gridbuf::python

// ---- Functions ----
//
// `allocate` makes a Buffer; `empty`, `zeros`, `ones`, `full`, their `_like` forms and
// `from_array` make plain arrays (an ndarray over a Buffer); `plan` computes without allocating;
// `register_preset`, `presets` and `get_dims` are what else users need of the core. All are
// vectorcalls, as an allocation is short enough for the reading of its arguments to matter.
//
// Key choice. A function is three steps, each from another module: resolve the request, allocate,
// fill. Fill values are cast by NumPy itself, once, into one element that is then repeated; so what
// `full` accepts and how it rounds cannot differ from numpy.full.

export namespace gridbuf::python {

/// Adds the functions to `module`. Called once, by the extension's initialisation.
void add_functions(PyObject* module);

}  // namespace gridbuf::python
