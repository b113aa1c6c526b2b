// Errors, references and arguments.

module;

#include <pybind11/pybind11.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <limits>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "modules/python/arguments/docstrings.h"

module gridbuf.python;

namespace gridbuf::python {
namespace {

constexpr Py_ssize_t kDescribedCharacters = 100;

// By row of the error table; written once, while the extension is imported, and kept for good.
std::array<PyObject*, kErrorTable.size()> exception_classes{};

// ---- Spellings of earlier proposals. ----

struct OldSpelling {
  std::string_view name;
  std::string_view today;
};

constexpr OldSpelling kOldSpellings[] = {
    {"default_parameters", "its name is backend"},
    {"defaults", "its name is backend"},
    {"layout_map", "its name is layout"},
    {"order", "pass layout, or backend=\"C\" or \"F\""},
    {"ndims", "the number of dimensions is the length of shape; the attribute is ndim"},
    {"gpu", "pass device=\"gpu\" or device=None"},
    {"value", "its name is fill_value, of full and full_like"},
    {"alignment", "its name is alignment_size, and its unit is bytes, not elements"},
    {"default_origin", "its name is aligned_index"},
    {"axes", "its name is dims"},
    {"periodic",
     "a storage has no boundary condition; gridbuf.storage.fill_halo(field, \"periodic\") fills "
     "its halo"},
    {"mask", "name the dimensions that there are with dims"},
    {"halo", "only storages have a halo; for plain arrays and buffers pass aligned_index"},
    {"managed", "it belongs to storages; plain arrays and buffers take memory=\"managed\""},
    {"shape", "the shape is that of data and cannot be overridden"},
};

const char* documentation(ErrorClass error_class) {
  switch (error_class) {
    case ErrorClass::kNoSuchBuffer:
      return doc("GTNoSuchBufferError");
    case ErrorClass::kDeviceUnavailable:
      return doc("DeviceUnavailableError");
    case ErrorClass::kSyncConflict:
      return doc("SyncConflictError");
    default:
      return "";
  }
}

// ---- References that are dropped on any thread: without the GIL, into a list. ----

struct SharedObject {
  std::shared_ptr<const void> inner;
  PyObject* object;
  SharedObject* next = nullptr;
};

/// A list. An entry is written before the release that makes it the head, and read after the
/// acquire that takes all. The swap that fails or the first load only guesses the head, so these
/// are relaxed.
std::atomic<SharedObject*> dropped_objects = nullptr;

/// Lets go of all that was dropped without the GIL. Runs with it, on the main thread.
int drop_objects(void* /*unused*/) {
  SharedObject* shared = dropped_objects.exchange(nullptr, std::memory_order_acquire);
  while (shared != nullptr) {
    const std::unique_ptr<SharedObject> owned(std::exchange(shared, shared->next));
    Py_DECREF(owned->object);
  }
  return 0;
}

void drop_shared(SharedObject* shared) noexcept {
  shared->inner.reset();
  // Python's own check of the GIL says yes after the interpreter's end as well.
  if (Py_IsInitialized() != 0 && PyGILState_Check() != 0) {
    Py_DECREF(shared->object);
    delete shared;
    return;
  }
  shared->next = dropped_objects.load(std::memory_order_relaxed);
  while (!dropped_objects.compare_exchange_weak(shared->next, shared, std::memory_order_release,
                                                std::memory_order_relaxed)) {
  }
  // If Python's own list is full the next object that is shared takes ours along.
  if (Py_IsInitialized() != 0) Py_AddPendingCall(drop_objects, nullptr);
}

/// What messages call a value: "shape", "shape[2]". The text is made only if there is a message.
struct Name {
  std::string_view parameter;
  Py_ssize_t position = -1;  // In a sequence; -1 if it is the parameter itself.

  std::string text() const {
    const std::string name(parameter);
    return position < 0 ? name : name + "[" + std::to_string(position) + "]";
  }
};

[[noreturn]] void raise_kind(const Name& name, PyObject* found, std::string_view bound,
                             std::string_view advice) {
  const std::string text = describe(found) + " (" + type_name(found) + ")";
  raise(ErrorClass::kType, Problem{name.text(), text, bound, advice});
}

/// The integer, or nothing if it does not fit in 64 bits. TypeError for other objects.
inline std::optional<std::int64_t> read_integer(PyObject* object, const Name& name) {
  py::object index;
  if (PyLong_CheckExact(object) == 0) [[unlikely]] {
    if (PyBool_Check(object) != 0) {
      raise_kind(name, object, "an integer", "write 0 or 1 if that is what you mean");
    }
    if (PyIndex_Check(object) == 0) {
      raise_kind(name, object, "an integer", "pass an int or a NumPy integer");
    }
    index = steal(PyNumber_Index(object));
    object = index.ptr();
  }
  int overflow = 0;
  const std::int64_t value = PyLong_AsLongLongAndOverflow(object, &overflow);
  return overflow == 0 ? std::optional(value) : std::nullopt;
}

std::int64_t read_int64(PyObject* object, const Name& name) {
  const std::optional<std::int64_t> value = read_integer(object, name);
  if (value) return *value;
  raise(ErrorClass::kValue,
        Problem{name.text(), describe(object),
                "an integer of 64 bits (at most 9223372036854775807)", "pass a smaller number"});
}

/// Calls `take(item, position)` for each entry. The sequence may change meanwhile: entries are held
/// while they are read, and one that has gone away is the sequence's own IndexError.
template <class Take>
inline void for_each_entry(PyObject* sequence, std::string_view what, const Take& take) {
  const bool is_tuple = PyTuple_CheckExact(sequence) != 0;  // Cannot change: no need to hold.
  const Py_ssize_t length = is_tuple ? PyTuple_GET_SIZE(sequence) : PySequence_Size(sequence);
  if (length < 0) throw PythonError();
  if (length > kMaxNdim) {
    raise(ErrorClass::kValue,
          Problem{std::string(what) + " length", std::to_string(length),
                  "at most " + std::to_string(kMaxNdim), "pass one entry per dimension"});
  }
  for (Py_ssize_t position = 0; position < length; ++position) {
    if (is_tuple) {
      take(PyTuple_GET_ITEM(sequence, position), position);
    } else {
      take(steal(PySequence_GetItem(sequence, position)).ptr(), position);
    }
  }
}

SubscriptItem to_subscript_item(PyObject* item) {
  if (item == Py_None) return NewAxis{};
  if (item == Py_Ellipsis) return Ellipsis{};
  if (PySlice_Check(item) != 0) {
    Py_ssize_t start = 0, stop = 0, step = 0;
    // Clips huge numbers, and raises for a step of 0 and for objects that are not integers.
    check(PySlice_Unpack(item, &start, &stop, &step));
    return Slice{start, stop, step};
  }
  if (PyBool_Check(item) != 0 || PyIndex_Check(item) == 0) {
    raise_kind({"index"}, item, "an integer, a slice, None or ...",
               "use to_numpy()[...] for indexing with arrays, lists and masks");
  }
  const std::optional<std::int64_t> index = read_integer(item, {"index"});
  if (index) return *index;
  raise(ErrorClass::kIndex, Problem{"index", describe(item), "within the extent of its dimension",
                                    "pass an index that exists"});
}

AttributeName kind_name("kind");
AttributeName value_name("value");

/// A name as Python writes its identifiers: normalised (NFC), and of letters that Python takes.
py::object normal_name(PyObject* text) {
  if (PyUnicode_IS_ASCII(text)) return share(text);
  py::object name = py::module_::import("unicodedata").attr("normalize")("NFC", py::handle(text));
  if (PyUnicode_IsIdentifier(name.ptr()) == 1) return name;
  raise(ErrorClass::kValue, Problem{"dimension name", describe(text), "an identifier, as of Python",
                                    "rename the dimension"});
}

Dim to_dim(PyObject* item, const Name& name_of_item) {
  const bool is_str = PyUnicode_Check(item) != 0;
  const py::object kind =
      PyUnicode_CheckExact(item) != 0 ? py::object() : optional_attribute(item, kind_name);
  const py::object value = is_str || !kind ? share(item) : optional_attribute(item, value_name);
  if (!value || PyUnicode_Check(value.ptr()) == 0) {
    raise_kind(name_of_item, item, "a str, a gridbuf.Dim or a Dimension of gt4py.next",
               "name data dimensions by a number in quotes, such as \"0\"");
  }
  const py::object name = normal_name(value.ptr());
  if (!kind) return value_of(parse_dim(utf8(name.ptr())));
  return value_of(make_dim(utf8(name.ptr()), to_dim_kind(kind.ptr())));
}

/// The str of a dimension; with the kind if it is not one of I, J, K and the numbers.
py::object from_dim(Dim dim) {
  if (!dim.is_named()) return make_text(to_string(dim));
  // As many as there can be names.
  static auto& made = *new Cache<std::int32_t, py::object>(kMaxNameIndex + 1);
  if (py::object found = made.find(dim.code())) return found;
  return made.add(dim.code(),
                  py::module_::import("gridbuf._dims")
                      .attr("Dim")(make_text(to_string(dim)), make_text(to_string(dim.kind()))));
}

/// The position of the dimension that `name` names.
int axis_of(PyObject* name, const Dims& dims, const Name& what) {
  const Dim wanted = to_dim(name, what);
  for (int axis = 0; axis < dims.size(); ++axis) {
    if (have_one_name(wanted, dims[axis])) return axis;
  }
  raise(ErrorClass::kValue, Problem{"a name in " + what.text(), describe(name),
                                    "one of " + to_string(dims), "name dimensions of the array"});
}

/// The positions of a sequence of names; null if it has other entries.
py::object positions_of_names(PyObject* sequence, const Dims& dims, std::string_view what) {
  const bool is_tuple = PyTuple_CheckExact(sequence) != 0 && PyTuple_GET_SIZE(sequence) > 0;
  if (is_tuple && PyLong_CheckExact(PyTuple_GET_ITEM(sequence, 0)) != 0) return {};
  const Py_ssize_t length = PySequence_Size(sequence);
  if (length < 0) throw PythonError();
  if (length == 0) return {};
  const py::object first = steal(PySequence_GetItem(sequence, 0));
  const bool is_name =
      PyUnicode_Check(first.ptr()) != 0 ||
      (PyIndex_Check(first.ptr()) == 0 && optional_attribute(first.ptr(), kind_name));
  if (!is_name) return {};
  Axes axes;
  for_each_entry(sequence, what, [&](PyObject* name, Py_ssize_t position) {
    axes.push_back(axis_of(name, dims, {what, position}));
  });
  return from_integers(axes.span());
}

}  // namespace

py::object item_or_none(PyObject* dict, PyObject* key) {
#if PY_VERSION_HEX >= 0x030D0000
  PyObject* found = nullptr;
  check(PyDict_GetItemRef(dict, key, &found));
  return steal_or_none(found);
#else
  PyObject* const found = PyDict_GetItemWithError(dict, key);
  if (found == nullptr && PyErr_Occurred() != nullptr) throw PythonError();
  return share(found);
#endif
}

void add_exceptions(PyObject* module) {
  py::register_local_exception_translator([](std::exception_ptr failure) {
    try {
      std::rethrow_exception(failure);
    } catch (const PythonError&) {  // Python's exception is set already.
    }
  });
  const auto builtin = [](std::string_view name) {
    return PyDict_GetItemString(PyEval_GetBuiltins(), std::string(name).c_str());
  };
  for (const ErrorRow& row : kErrorTable) {
    PyObject*& entry = exception_classes[static_cast<std::size_t>(row.error_class)];
    if (row.python_base.empty()) {
      entry = Py_XNewRef(builtin(row.python_name));
      continue;
    }
    const std::string name(row.python_name);
    entry =
        steal(PyErr_NewExceptionWithDoc(("gridbuf." + name).c_str(), documentation(row.error_class),
                                        builtin(row.python_base), nullptr))
            .release()
            .ptr();
    check(PyModule_AddObjectRef(module, name.c_str(), entry));
  }
}

void raise(ErrorClass error_class, std::string_view message) {
  PyErr_SetObject(exception_classes[static_cast<std::size_t>(error_class)],
                  make_text(message).ptr());
  throw PythonError();
}

void raise(ErrorClass error_class, const Problem& problem) {
  raise(error_class, problem_text(problem));
}

void raise(const absl::Status& status) {
  raise(error_class_of(status), std::string(status.message()));
}

py::object optional_attribute(PyObject* object, AttributeName& name) {
  PyObject* value = nullptr;
#if PY_VERSION_HEX >= 0x030D0000
  check(PyObject_GetOptionalAttr(object, name.get(), &value));
#else
  check(_PyObject_LookupAttr(object, name.get(), &value));  // The same, before it was public.
#endif
  return steal_or_none(value);
}

bool take_error(PyObject* exception_class) noexcept {
  if (PyErr_ExceptionMatches(exception_class) == 0) return false;
  PyErr_Clear();
  return true;
}

std::string describe(PyObject* object) {
  try {
    const py::object text = steal(PyObject_Repr(object));
    const Py_ssize_t length = PyUnicode_GetLength(text.ptr());
    const py::object kept = steal(PyUnicode_Substring(text.ptr(), 0, kDescribedCharacters));
    const py::object bytes =
        steal(PyUnicode_AsEncodedString(kept.ptr(), "utf-8", "backslashreplace"));
    return PyBytes_AS_STRING(bytes.ptr()) + std::string(length > kDescribedCharacters ? "..." : "");
  } catch (const PythonError&) {
    PyErr_Clear();
    // An int of thousands of digits has no repr either: Python limits that conversion.
    const std::string size = PyLong_Check(object) != 0 ? " beyond 64 bits" : "";
    return "<" + type_name(object) + size + ">";
  }
}

std::string type_name(PyObject* object) { return Py_TYPE(object)->tp_name; }

std::shared_ptr<const void> share_object(std::shared_ptr<const void> inner, PyObject* object) {
  if (object == nullptr) return inner;
  drop_objects(nullptr);
  // Drops what it is given also if it fails.
  return {new SharedObject{std::move(inner), Py_NewRef(object)}, drop_shared};
}

PyObject* object_in(const std::shared_ptr<const void>& shared) {
  using Drop = decltype(&drop_shared);
  const Drop* const drop = std::get_deleter<Drop>(shared);
  if (drop == nullptr) return nullptr;
  return static_cast<const SharedObject*>(shared.get())->object;
}

std::string_view utf8(PyObject* text) {
  Py_ssize_t length = 0;
  const char* characters = PyUnicode_AsUTF8AndSize(text, &length);
  if (characters == nullptr) throw PythonError();
  return {characters, static_cast<std::size_t>(length)};
}

py::object make_text(std::string_view text) {
  return steal(
      PyUnicode_DecodeUTF8(text.data(), static_cast<Py_ssize_t>(text.size()), "backslashreplace"));
}

// ---- Arguments. ----

void raise_positional(const char* function, int most, Py_ssize_t count) {
  raise(ErrorClass::kType, std::string(function) + "() takes at most " + std::to_string(most) +
                               " arguments by position, but " + std::to_string(count) +
                               " were given; pass the others by name");
}

void raise_unknown(const char* function, PyObject* keyword,
                   std::span<const std::string_view> names) {
  std::string advice;
  if (std::ranges::count(names, "backend") != 0) {
    const auto* const old = std::ranges::find(kOldSpellings, utf8(keyword), &OldSpelling::name);
    if (old != std::end(kOldSpellings)) advice = ": " + std::string(old->today);
  }
  if (advice.empty()) {
    for (const std::string_view name : names) {
      advice.append(advice.empty() ? "; its parameters are " : ", ").append(name);
    }
  }
  raise(ErrorClass::kType,
        std::string(function) + "() has no parameter " + describe(keyword) + advice);
}

void raise_twice(const char* function, PyObject* keyword) {
  raise(ErrorClass::kType,
        std::string(function) + "() got the parameter " + describe(keyword) +
            " twice, the other time by position or under another name; pass it once");
}

void raise_missing(const char* function, std::string_view name, int position) {
  raise(ErrorClass::kType, std::string(function) + "() is underdetermined: " + std::string(name) +
                               " is missing; pass it as argument " + std::to_string(position));
}

std::int64_t to_integer(PyObject* object, std::string_view what) {
  return read_int64(object, {what});
}

bool is_sequence(PyObject* object) {
  if (PyTuple_CheckExact(object) != 0) return true;
  return PySequence_Check(object) != 0 && PyUnicode_Check(object) == 0 &&
         PyBytes_Check(object) == 0 && PyByteArray_Check(object) == 0;
}

Extents to_integers(PyObject* object, std::string_view what) {
  if (!is_sequence(object)) {
    raise_kind({what}, object, "a sequence of integers", "pass a tuple, one entry per dimension");
  }
  Extents values;
  for_each_entry(object, what, [&](PyObject* item, Py_ssize_t position) {
    values.push_back(read_int64(item, {what, position}));
  });
  return values;
}

Extents to_shape(PyObject* object, std::string_view dtype) {
  Extents shape;
  const auto take = [&](PyObject* item, Py_ssize_t position) {
    const std::optional<std::int64_t> extent = read_integer(item, {"shape", position});
    if (!extent || *extent < 0) {
      raise(ErrorClass::kValue,
            Problem{"shape", describe(object) + " of " + std::string(dtype),
                    extent ? "of extents ≥ 0" : "at most 9223372036854775807 bytes in all",
                    extent ? "use extents of 0 or more" : "use smaller extents"});
    }
    shape.push_back(*extent);
  };
  if (is_sequence(object)) {
    for_each_entry(object, "shape", take);
  } else if (PyIndex_Check(object) != 0) {
    take(object, -1);
  } else {
    raise_kind({"shape"}, object, "a sequence of integers",
               "pass a tuple, one extent per dimension");
  }
  return shape;
}

Dims to_dims(PyObject* object, int ndim) {
  if (PyUnicode_CheckExact(object) != 0 && PyUnicode_IS_ASCII(object)) {
    return value_of(parse_dims(utf8(object), ndim));
  }
  if (PyUnicode_CheckExact(object) == 0 && !is_sequence(object)) {
    raise_kind({"dims"}, object, "a str or a sequence of str",
               "pass names such as \"IJK\" or (\"Cell\", \"K\")");
  }
  Dims dims;
  for_each_entry(object, "dims", [&](PyObject* item, Py_ssize_t position) {
    dims.push_back(to_dim(item, {"dims", position}));
  });
  check(validate_dims(dims, ndim));
  return dims;
}

Dims starting_at(PyObject* starts, const Dims& dims) {
  const py::object entries = by_position(starts, dims, "lower", share(Py_None));
  if (!is_sequence(entries.ptr())) {
    raise_kind({"lower"}, starts, "a sequence with an integer or None for each dimension",
               "pass (1, 1, None), for example");
  }
  Dims found;
  for_each_entry(entries.ptr(), "lower", [&](PyObject* item, Py_ssize_t position) {
    const Dim dim = found.size() < dims.size() ? dims[found.size()] : Dim();
    if (item == Py_None) return found.push_back(dim.has_start() ? dim.plain() : dim);
    const Dim starting = dim.starting_at(read_int64(item, {"lower", position}));
    if (starting.has_start()) return found.push_back(starting);
    raise(ErrorClass::kValue,
          Problem{"lower[" + std::to_string(position) + "]", describe(item),
                  std::to_string(Dim::kMinStart) + " to " + std::to_string(Dim::kMaxStart),
                  "count from a nearer point"});
  });
  if (found.size() == dims.size()) return found;
  raise(ErrorClass::kValue,
        Problem{"lower", describe(starts), "one index or None for each of " + to_string(dims),
                "pass an entry per dimension"});
}

py::object starts_of(const Dims& dims) {
  return tuple_of(dims.size(), [&dims](Py_ssize_t axis) {
    const Dim dim = dims[static_cast<int>(axis)];
    return dim.has_start() ? steal(PyLong_FromLongLong(dim.start())) : share(Py_None);
  });
}

DimKind to_dim_kind(PyObject* object) {
  if (PyUnicode_Check(object) != 0) return value_of(parse_dim_kind(utf8(object)));
  raise_kind({"the kind of a dimension"}, object, "a str", "pass \"vertical\", for example");
}

py::object from_dims(const Dims& dims) {
  return tuple_of(dims.size(),
                  [&](Py_ssize_t axis) { return from_dim(dims[static_cast<int>(axis)]); });
}

py::object by_position(PyObject* object, const Dims& dims, std::string_view what,
                       const py::object& missing) {
  if (PyDict_Check(object) == 0) return share(object);
  std::vector<py::object> entries(static_cast<std::size_t>(dims.size()), missing);
  // A copy: reading a name can run Python, which can change the dict.
  const py::object items = steal(PySequence_Tuple(steal(PyDict_Items(object)).ptr()));
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(items.ptr()); ++i) {
    PyObject* const item = PyTuple_GET_ITEM(items.ptr(), i);
    const int axis = axis_of(PyTuple_GET_ITEM(item, 0), dims, {what});
    entries[static_cast<std::size_t>(axis)] = share(PyTuple_GET_ITEM(item, 1));
  }
  return tuple_of(dims.size(), [&](std::size_t axis) { return entries[axis]; });
}

LayoutMap to_layout(PyObject* object, const Dims& dims) {
  py::object returned;
  if (PyCallable_Check(object) != 0) {
    const py::object names = from_dims(dims);
    returned = steal(PyObject_CallOneArg(object, names.ptr()));
    object = returned.ptr();
  }
  if (!is_sequence(object)) {
    raise_kind({"layout"}, object, "a sequence of ranks or of names, or a callable of the dims",
               PyUnicode_Check(object) != 0
                   ? "pass the name of a preset as backend, such as backend=\"F\""
                   : "pass one rank per dimension, 0 for the largest stride");
  }
  LayoutMap layout;
  bool all_fit = true;
  const py::object axes = positions_of_names(object, dims, "layout");
  if (axes) {
    return axes_by_rank(to_layout(axes.ptr(), dims));  // Positions by rank, and their inverse.
  }
  for (const std::int64_t rank : to_integers(object, "layout")) {
    all_fit = all_fit && rank >= -1 && rank <= kMaxNdim;
    // What is outside is as wrong as the bounds themselves.
    layout.push_back(static_cast<int>(std::clamp<std::int64_t>(rank, -1, kMaxNdim)));
  }
  const absl::Status status = validate_layout_map(layout, dims.size());
  if (!status.ok()) raise(all_fit ? status : with_context(status, "layout=" + describe(object)));
  return layout;
}

Axes to_axes(const py::args& given, const Dims& dims) {
  Axes order;
  const int ndim = dims.size();
  const bool is_one = given.size() == 1;
  PyObject* const first = is_one ? PyTuple_GET_ITEM(given.ptr(), 0) : nullptr;
  if (given.empty() || first == Py_None) return order;
  const std::string bound = "the number of dimensions, " + std::to_string(ndim);
  const auto raise_count = [&](std::size_t count) {
    raise(ErrorClass::kValue,
          Problem{"number of axes", std::to_string(count), bound, "pass each axis once"});
  };
  const bool is_list = is_one && is_sequence(first);
  if (!is_list && given.size() > static_cast<std::size_t>(kMaxNdim)) raise_count(given.size());
  using Limits = std::numeric_limits<int>;
  PyObject* const list = is_list ? first : given.ptr();
  const py::object axes = positions_of_names(list, dims, "axes");
  for (const std::int64_t axis : to_integers(axes ? axes.ptr() : list, "axes")) {
    // What is outside int is outside every array as well.
    order.push_back(static_cast<int>(std::clamp<std::int64_t>(axis, Limits::min(), Limits::max())));
  }
  if (order.size() != ndim) raise_count(static_cast<std::size_t>(order.size()));
  return order;
}

bool is_shared(PyObject* memory) {
  return memory != nullptr && PyUnicode_Check(memory) != 0 && utf8(memory) == "shared";
}

std::optional<MemoryKind> to_memory_kind(PyObject* object) {
  if (object == nullptr || object == Py_None) return std::nullopt;
  if (PyUnicode_Check(object) == 0) {
    raise_kind({"memory"}, object,
               "None, \"host\", \"shared\", \"pinned\", \"managed\" or \"device\"",
               "pass the name of a kind of memory");
  }
  return value_of(memory_kind_named(utf8(object)));
}

bool to_flag(PyObject* object, std::string_view what) {
  if (object == Py_True) return true;
  if (object == Py_False) return false;
  raise_kind({what}, object, "True or False", "pass a bool");
}

std::vector<SubscriptItem> to_subscript(PyObject* key, const Dims& dims) {
  py::object named;
  if (PyDict_Check(key) != 0) {
    named = by_position(key, dims, "index", py::slice(std::nullopt, std::nullopt, std::nullopt));
    key = named.ptr();
  }
  const bool is_tuple = PyTuple_Check(key) != 0;
  const Py_ssize_t length = is_tuple ? PyTuple_GET_SIZE(key) : 1;
  // At most every dimension, every new axis and one ellipsis; more than that never fits.
  if (length > 2 * kMaxNdim + 1) {
    raise(ErrorClass::kIndex, Problem{"number of indices", std::to_string(length),
                                      "at most one per dimension and new axis", "pass fewer"});
  }
  std::vector<SubscriptItem> items;
  items.reserve(static_cast<std::size_t>(length));
  for (Py_ssize_t i = 0; i < length; ++i) {
    items.push_back(to_subscript_item(is_tuple ? PyTuple_GET_ITEM(key, i) : key));
  }
  return items;
}

py::object from_integers(std::span<const std::int64_t> values) {
  return tuple_of(std::ssize(values),
                  [&](std::size_t i) { return steal(PyLong_FromLongLong(values[i])); });
}
py::object from_integers(std::span<const int> values) {
  return tuple_of(std::ssize(values),
                  [&](std::size_t i) { return steal(PyLong_FromLong(values[i])); });
}

}  // namespace gridbuf::python
