// What all bindings need: errors and references, arguments, NumPy.
//
// The other libraries use absl::Status and no Python. This one turns a status into an exception (by
// the table of gridbuf.base), a Python object into a value of gridbuf.layout or an exception, and a
// NumPy dtype into the type that gridbuf.interface knows. All functions need the GIL.
#ifndef GRIDBUF_MODULES_PYTHON_ARGUMENTS_ARGUMENTS_H_
#define GRIDBUF_MODULES_PYTHON_ARGUMENTS_ARGUMENTS_H_

// ---- Errors and references ----
//
// Key decision: inside the bindings a failure is the C++ exception `PythonError`, which is empty,
// because the Python exception is set already. pybind11's own exception moves the Python exception
// out and back in, which costs more than a small allocation. pybind11 functions translate
// PythonError (`add_exceptions` registers it); raw functions wrap their body in `guarded`.
//
// pybind11's references are exported from here: its headers take 4 s per file.

namespace pybind11 {
using pybind11::args;
using pybind11::error_already_set;
using pybind11::error_scope;
using pybind11::gil_scoped_release_simple;
using pybind11::handle;
using pybind11::kwargs;
using pybind11::object;
using pybind11::reinterpret_borrow;
using pybind11::reinterpret_steal;
}  // namespace pybind11

namespace gridbuf::python {

namespace py = pybind11;

/// Thrown when a Python exception has been set.
struct PythonError {};

/// Owns a new reference that may be null.
inline py::object steal_or_none(PyObject* object) noexcept {
  return py::reinterpret_steal<py::object>(object);
}
/// The same; throws PythonError for null, which means that an exception is set.
inline py::object steal(PyObject* object) {
  if (object == nullptr) throw PythonError();
  return steal_or_none(object);
}
/// A further reference to `object`, which may be null.
inline py::object share(PyObject* object) noexcept {
  return py::reinterpret_borrow<py::object>(object);
}

/// A tuple of the objects.
template <class... Objects>
py::object pack(const Objects&... objects) {
  return steal(PyTuple_Pack(sizeof...(objects), objects.ptr()...));
}

/// A tuple of the `count` objects that `make(i)` returns.
template <class Make>
py::object tuple_of(Py_ssize_t count, const Make& make) {
  py::object tuple = steal(PyTuple_New(count));
  for (Py_ssize_t i = 0; i < count; ++i) PyTuple_SET_ITEM(tuple.ptr(), i, make(i).release().ptr());
  return tuple;
}

/// Throws PythonError if `result` is the -1 of a failed call of Python's C interface.
inline void check(int result) {
  if (result < 0) throw PythonError();
}

/// Adds the exception classes of the error table that Python does not have to `module`, and tells
/// pybind11 about PythonError. Called once, by the extension's initialisation.
void add_exceptions(PyObject* module);

/// Sets the exception that the error table names for `status`, and throws. Requires !status.ok().
[[noreturn]] void raise(const absl::Status& status);

/// Sets an exception of `error_class` with `message`, and throws.
[[noreturn]] void raise(ErrorClass error_class, std::string_view message);
[[noreturn]] void raise(ErrorClass error_class, const Problem& problem);

/// Raises unless `status` is OK.
inline void check(const absl::Status& status) {
  if (!status.ok()) raise(status);
}

/// The value, or its error raised.
template <class T>
T value_of(absl::StatusOr<T> value) {
  if (!value.ok()) raise(value.status());
  return *std::move(value);
}

// ---- Threads ----
//
// Key decision: with the GIL nothing below costs anything. A free-threaded CPython (3.14t) runs
// these functions on several threads at once, so each piece of state that outlives a call has a
// PythonMutex, an atomic, or is written only while the extension is imported.

/// Guards what the GIL guards in other builds. No Python code may run while it is held: objects
/// that are dropped there could run theirs, so they are moved out first.
class PythonMutex {
 public:
#ifdef Py_GIL_DISABLED
  void lock() noexcept { PyMutex_Lock(&mutex_); }
  void unlock() noexcept { PyMutex_Unlock(&mutex_); }

 private:
  PyMutex mutex_ = {};
#else
  inline void lock() noexcept {}
  inline void unlock() noexcept {}
#endif
};
using PythonLock = std::lock_guard<PythonMutex>;

#ifdef Py_GIL_DISABLED
using ShareCount = std::atomic<std::int64_t>;
#else
using ShareCount = std::int64_t;
#endif

/// A map of at most `capacity` entries, which a full one drops all: its keys may be made on the
/// fly. Never destroyed: its references cannot be dropped after the interpreter's end.
template <class Key, class Value, class Hash = std::hash<Key>>
class Cache {
 public:
  explicit Cache(std::size_t capacity) : capacity_(capacity) {}
  Cache(const Cache&) = delete;
  Cache& operator=(const Cache&) = delete;

  /// The value of `key`, or one without a value.
  Value find(const Key& key) {
    const PythonLock lock(mutex_);
    const auto found = values_.find(key);
    return found == values_.end() ? Value() : found->second;
  }
  /// Adds a value, and returns it; or the one that another thread has added meanwhile.
  Value add(Key key, Value value) {
    Map dropped;  // after the lock
    const PythonLock lock(mutex_);
    if (values_.size() >= capacity_) dropped.swap(values_);
    return values_.try_emplace(std::move(key), std::move(value)).first->second;
  }

 private:
  using Map = std::unordered_map<Key, Value, Hash>;
  std::size_t capacity_;
  PythonMutex mutex_;
  Map values_;
};

/// dict[key] or none. Another thread may change the dict meanwhile.
py::object item_or_none(PyObject* dict, PyObject* key);

/// The name of an attribute as interned text, made at its first use. For static variables. Two
/// threads that use it first make the same object.
class AttributeName {
 public:
  explicit constexpr AttributeName(const char* text) noexcept : text_(text) {}
  PyObject* get() {
    PyObject* object = object_.load(std::memory_order_acquire);
    if (object == nullptr) {
      object = steal(PyUnicode_InternFromString(text_)).release().ptr();
      object_.store(object, std::memory_order_release);
    }
    return object;
  }

 private:
  const char* text_;
  std::atomic<PyObject*> object_ = nullptr;
};

/// The attribute, or none if there is none, which raises and clears no AttributeError.
py::object optional_attribute(PyObject* object, AttributeName& name);

/// Whether an exception of the given class is set; if so, it is cleared.
bool take_error(PyObject* exception_class) noexcept;

/// For messages: the object's repr, shortened to about 100 characters, or its type's name if repr
/// raises; leaves no exception set.
std::string describe(PyObject* object);
/// For messages: "int", "numpy.ndarray".
std::string type_name(PyObject* object);

/// The UTF-8 text of a str; valid while the object lives. Raises for a str that has none
/// (surrogates). Requires PyUnicode_Check(text).
std::string_view utf8(PyObject* text);

/// A new str.
py::object make_text(std::string_view text);

/// A share in `inner` (which may be empty) and in `object` (which may be null): for memory that an
/// object keeps alive. Any thread may drop the last share. With the GIL the reference goes at once;
/// without it, when the main thread next runs Python; after the interpreter's end, never.
std::shared_ptr<const void> share_object(std::shared_ptr<const void> inner, PyObject* object);
/// The object of a share, borrowed; null if it has none.
PyObject* object_in(const std::shared_ptr<const void>& shared);

/// Shorter work takes less time than handing the GIL to another thread and back.
inline constexpr std::int64_t kLongBytes = std::int64_t{1} << 20;

/// Runs `body`, which touches no Python object, without the GIL; its value or status.
template <class Body>
auto run_without_gil(Body&& body) {
  const py::gil_scoped_release_simple released;
  return body();
}

/// Runs `body` and returns its result; whatever it throws becomes an exception and `failure`.
template <class Result, class Body>
Result guarded(Result failure, Body&& body) noexcept {
  try {
    return body();
  } catch (const PythonError&) {
    return failure;
  } catch (py::error_already_set& error) {
    error.restore();
    return failure;
  } catch (const std::bad_alloc&) {
    PyErr_NoMemory();
    return failure;
  } catch (const std::exception& error) {
    if (PyErr_Occurred() != nullptr) return failure;
    PyErr_Format(PyExc_RuntimeError, "gridbuf: %s; this is a defect of gridbuf, please report it",
                 error.what());
    return failure;
  }
}

/// `guarded` for functions that return an object.
template <class Body>
PyObject* guarded(Body&& body) noexcept {
  return guarded<PyObject*>(nullptr, [&body]() -> PyObject* { return body().release().ptr(); });
}

/// A function for a table of CPython.
template <class Function>
PyCFunction method(Function function) {
  return reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(function));
}

/// Finishes a class of pybind11: it belongs to `package` and cannot be changed; calling it gives
/// `make(arguments, keywords)`. Without this, `__new__` makes an object without a C++ value, and
/// the next use of that object ends the process.
template <py::object (*make)(PyObject* arguments, PyObject* keywords)>
void close_class(py::handle type, const char* package) {
  check(PyObject_SetAttrString(type.ptr(), "__module__", make_text(package).ptr()));
  auto* const closed = reinterpret_cast<PyTypeObject*>(type.ptr());
  closed->tp_new = [](PyTypeObject*, PyObject* arguments, PyObject* keywords) {
    return guarded([&] { return make(arguments, keywords); });
  };
  closed->tp_init = [](PyObject*, PyObject*, PyObject*) { return 0; };
  // Only pybind11 calls this, and does not check the result.
  closed->tp_alloc = [](PyTypeObject* made, Py_ssize_t count) {
    return steal(PyType_GenericAlloc(made, count)).release().ptr();
  };
  closed->tp_flags |= Py_TPFLAGS_IMMUTABLETYPE;
  PyType_Modified(closed);
}

// ---- Arguments ----
//
// A parameter may be any object: an int of a thousand digits, a list that changes while it is read,
// a class whose __len__ raises. These functions return a value of gridbuf.layout, or raise
// TypeError for the wrong kind, ValueError for a value out of bounds, or the object's own
// exception.
//
// Key decisions. Integers are what `operator.index` accepts, but not bool, because `shape=(True,
// 3)` is a mistake. Sequences are asked for their length first and are never read beyond kMaxNdim
// entries. Rules of values (is it a permutation? is the name known?) are gridbuf.layout's.

/// A parameter of a function: its name, and the member of `Given` that receives what was passed.
template <class Given>
struct Parameter {
  std::string_view name;
  PyObject* Given::* member;
};

// TypeErrors about a call; `names` are those of the parameters.
[[noreturn]] void raise_positional(const char* function, int most, Py_ssize_t count);
[[noreturn]] void raise_unknown(const char* function, PyObject* keyword,
                                std::span<const std::string_view> names);
[[noreturn]] void raise_twice(const char* function, PyObject* keyword);
[[noreturn]] void raise_missing(const char* function, std::string_view name, int position);

/// The parameters of a function, and how a call of it is read. `Given` is a struct of borrowed
/// references, which are null where nothing was passed.
template <class Given, std::size_t length>
struct Signature {
  const char* function;                             // for messages: "empty"
  int positional;                                   // how many may be passed by position
  int required;                                     // how many must be passed
  std::array<Parameter<Given>, length> parameters;  // positional ones first

  /// The arguments of a vectorcall. TypeError for too many, unknown, repeated and missing ones.
  Given read(PyObject* const* arguments, Py_ssize_t count, PyObject* keywords) const {
    Given given;
    if (count > positional) raise_positional(function, positional, count);
    for (std::size_t i = 0; i < static_cast<std::size_t>(count); ++i) {
      given.*parameters[i].member = arguments[i];
    }
    const Py_ssize_t keyword_count = keywords == nullptr ? 0 : PyTuple_GET_SIZE(keywords);
    for (Py_ssize_t i = 0; i < keyword_count; ++i) {
      PyObject* const keyword = PyTuple_GET_ITEM(keywords, i);
      const auto found = std::ranges::find(parameters, utf8(keyword), &Parameter<Given>::name);
      if (found == parameters.end()) raise_unknown(function, keyword, names());
      PyObject*& value = given.*found->member;
      if (value != nullptr) raise_twice(function, keyword);
      value = arguments[count + i];
    }
    for (int i = 0; i < required; ++i) {
      const Parameter<Given>& parameter = parameters[static_cast<std::size_t>(i)];
      if (given.*parameter.member == nullptr) raise_missing(function, parameter.name, i + 1);
    }
    return given;
  }

  std::array<std::string_view, length> names() const {
    std::array<std::string_view, length> all;
    std::ranges::transform(parameters, all.begin(), &Parameter<Given>::name);
    return all;
  }
};

/// A function of the extension, which returns `body(given)`, the object.
template <const auto& signature, auto body>
PyObject* function_of(PyObject*, PyObject* const* arguments, Py_ssize_t count, PyObject* keywords) {
  return guarded([&] { return body(signature.read(arguments, count, keywords)); });
}
template <const auto& signature, auto body>
PyMethodDef definition_of(const char* documentation) {
  return {signature.function, method(function_of<signature, body>), METH_FASTCALL | METH_KEYWORDS,
          documentation};
}

/// An integer. TypeError for anything else (bool too); ValueError beyond 64 bits. `what` names the
/// value in messages: "alignment_size".
std::int64_t to_integer(PyObject* object, std::string_view what);

/// Whether `object` can be read by the function below: a sequence, but no text and no bytes.
bool is_sequence(PyObject* object);

/// A sequence of at most kMaxNdim integers. TypeError for other kinds, ValueError for more entries
/// or entries beyond 64 bits.
Extents to_integers(PyObject* object, std::string_view what);

/// A shape: a sequence of integers, or one integer for one dimension, as in NumPy. ValueError,
/// naming the limit, for negative extents and for those beyond 64 bits; `dtype` is for messages.
Extents to_shape(PyObject* object, std::string_view dtype);

/// The names of `ndim` dimensions: a str of one-character names, or a sequence of str and of
/// objects with a kind: `gridbuf.Dim`, and Dimensions of gt4py.next, whose name is their `value`.
Dims to_dims(PyObject* object, int ndim);

/// `dims` that begin at these indices: an integer or None, for unknown, per dimension, or a dict
/// from names. TypeError or ValueError for others, and for indices that a Dim cannot have.
Dims starting_at(PyObject* starts, const Dims& dims);

/// The starts of `dims`, a tuple with None for unknown ones.
py::object starts_of(const Dims& dims);

/// The kind of a dimension: "horizontal", "local", "vertical" or "data".
DimKind to_dim_kind(PyObject* object);

/// The names as a tuple of str; those other than I, J, K and numbers are a `gridbuf.Dim`.
py::object from_dims(const Dims& dims);

/// A dict from names of dimensions to entries as a tuple with an entry per dimension, `missing` for
/// those without; any other object unchanged. ValueError for names that are not in `dims`.
py::object by_position(PyObject* object, const Dims& dims, std::string_view what,
                       const py::object& missing);

/// A layout map: a sequence of ranks, the names from the largest stride to the smallest, or a
/// callable of the tuple of names that returns either.
LayoutMap to_layout(PyObject* object, const Dims& dims);

/// The arguments of transpose(*axes): none, None, one sequence, or integers or names. Empty:
/// reversed.
Axes to_axes(const py::args& given, const Dims& dims);

/// Whether it is "shared", memory of the host that processes share.
bool is_shared(PyObject* memory);
/// A kind of memory by its name; nothing for null and None.
std::optional<MemoryKind> to_memory_kind(PyObject* object);

/// True or False; TypeError for anything else.
bool to_flag(PyObject* object, std::string_view what);

/// The items between the brackets of a[key]: integers, slices, None and `...`, or a dict from names
/// of dimensions to integers and slices. TypeError for other objects (a view has no advanced
/// indexing); IndexError for integers beyond 64 bits.
std::vector<SubscriptItem> to_subscript(PyObject* key, const Dims& dims);

/// A tuple of int.
py::object from_integers(std::span<const std::int64_t> values);
py::object from_integers(std::span<const int> values);

// ---- NumPy ----
//
// All uses of NumPy's C API, of version 2.0, which later NumPys keep.
//
// Key choice. A dtype is translated once: all buffers of that dtype share a `DTypeRecord`, which a
// small cache finds by the identity of the dtype object. Only dtypes of a fixed size without
// objects pass: text and raw types need their length, and objects have no bytes to copy or export.

/// A NumPy dtype. Immutable and shared.
struct DTypeRecord {
  py::object numpy;    // numpy.dtype, without a subarray
  DType type;          // what the interface modules know
  py::object typestr;  // str, for the array interface
  py::object descr;    // list, for the array interface; none if NumPy has no words for it
  std::string name;    // "float64": for messages
  mutable ShareCount shares = 0;
};

/// A share in a record, or none. Counted without atomics where there is a GIL: two pairs of atomic
/// operations would take a tenth of a small allocation.
class DTypePtr {
 public:
  inline DTypePtr() noexcept = default;
  inline explicit DTypePtr(const DTypeRecord* record) noexcept : record_(record) {
    if (record_ != nullptr) ++record_->shares;
  }
  inline DTypePtr(const DTypePtr& other) noexcept : DTypePtr(other.record_) {}
  inline DTypePtr(DTypePtr&& other) noexcept : record_(std::exchange(other.record_, nullptr)) {}
  inline DTypePtr& operator=(DTypePtr other) noexcept {
    std::swap(record_, other.record_);
    return *this;
  }
  inline ~DTypePtr() {
    if (record_ != nullptr && --record_->shares == 0) delete record_;
  }

  inline const DTypeRecord* operator->() const noexcept { return record_; }
  inline const DTypeRecord& operator*() const noexcept { return *record_; }
  inline explicit operator bool() const noexcept { return record_ != nullptr; }

 private:
  const DTypeRecord* record_ = nullptr;
};

/// A dtype as passed: `subarray` is the shape that a subarray dtype adds to the array's, as in
/// NumPy.
struct RequestedDType {
  DTypePtr record;
  Extents subarray;
};

/// Called once, by the extension's initialisation. ImportError if NumPy is absent or too old.
void load_numpy();

/// The record of a `dtype` parameter; float64 for null and None. NumPy's own errors for objects
/// that are not a dtype; TypeError for types of Python objects and those without a fixed size.
RequestedDType to_dtype(PyObject* object);

/// Whether NumPy takes it for the type of Python objects.
bool is_object_dtype(PyObject* object);

/// The record of a numpy.dtype object.
DTypePtr record_of(PyObject* dtype);
/// The same; none for a type for which that raises TypeError or ValueError.
DTypePtr record_or_none(PyObject* dtype);

/// The record of a type without fields. Types that only DLPack can name (bfloat16, FP8) are those
/// of the package ml_dtypes: BufferError without it, and for types that it does not have.
DTypePtr record_of(const DType& type);

/// An ndarray of the shape and strides of `view`, which keeps `base` alive.
py::object make_ndarray(const DTypeRecord& dtype, const StridedView& view, std::byte* first_element,
                        bool readonly, PyObject* base);
/// The ndarray itself, or a view of it if some of its strides have no meaning: torch.from_numpy
/// refuses negative ones also of extents of 1.
py::object with_meaningful_strides(PyObject* array);

struct NdarrayFields {
  Extents shape;
  Extents strides_bytes;
  std::byte* first_element;
  PyObject* dtype;  // Borrowed.
  PyObject* base;   // Borrowed; null if it has none.
  bool readonly;
};
bool is_ndarray(PyObject* object);
/// Not of a subclass, which can have a mask or an interface besides its fields.
bool is_exact_ndarray(PyObject* object);
/// Requires is_ndarray(object).
NdarrayFields fields_of(PyObject* object);

/// Its numpy.dtype, borrowed. Requires the same.
PyObject* dtype_of_ndarray(PyObject* object);

/// `numpy.asarray(object)`. NumPy believes every pointer of a foreign object: use as_ndarray.
py::object read_by_numpy(PyObject* object);

/// `numpy.copyto(target, source, casting=casting, where=mask)`; a null mask: everywhere.
void copy_by_numpy(PyObject* target, PyObject* source, PyObject* casting, PyObject* mask);

/// `numpy.can_cast(from, to, casting)`, of two numpy.dtype objects.
bool can_cast(PyObject* from, PyObject* to, PyObject* casting);

/// "unsafe" and "same_kind" as Python's texts; borrowed, alive for good.
PyObject* unsafe_casting();
PyObject* same_kind_casting();

/// A 0-d ndarray that holds `value`, cast as `numpy.copyto` casts it; null means "unsafe", as
/// in numpy.full.
py::object make_element(PyObject* dtype, PyObject* value, PyObject* casting = nullptr);

/// The same, cast as an assignment to an element casts, which refuses more.
py::object make_assigned(const DTypeRecord& dtype, PyObject* value);

/// Whether `value` is one value and not an array of them: a Python number, text or bytes, a NumPy
/// scalar, a 0-d array.
bool is_scalar(PyObject* value);

}  // namespace gridbuf::python

#endif  // GRIDBUF_MODULES_PYTHON_ARGUMENTS_ARGUMENTS_H_
