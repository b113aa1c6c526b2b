// One call: its steps, in order, whatever raises.

module;

#include <Python.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

module gridbuf.python.call;

import gridbuf.alloc;
import gridbuf.array;
import gridbuf.base;
import gridbuf.call;
import gridbuf.device.registry;
import gridbuf.device;
import gridbuf.interface.numpy;
import gridbuf.interface;
import gridbuf.layout;
import gridbuf.python.buffer;
import gridbuf.python.storage;
import gridbuf.python.support;
import gridbuf.storage;

namespace gridbuf::python::calls {
namespace {

DeviceType data_side(Side side) {
  return side == Side::kHost ? DeviceType::kHost : DeviceType::kCuda;
}
Side side_of(DeviceType side) { return side == DeviceType::kHost ? Side::kHost : Side::kDevice; }

bool reaches(Side side, DeviceType type) {
  if (side == Side::kHost) return is_host_readable(type);
  return type == DeviceType::kCuda || type == DeviceType::kCudaManaged;
}

// ---- What was raised. ----

/// The first exception of a call. Later ones hang on it.
class Failure {
 public:
  Failure() = default;
  Failure(const Failure&) = delete;
  Failure& operator=(const Failure&) = delete;

  /// Runs `body`; false if it raised, which is kept. `field` (null: none) and `step` say where.
  template <class Body>
  bool attempt(PyObject* field, const char* step, Body&& body) {
    const int done = guarded<int>(-1, [&] {
      body();
      return 0;
    });
    if (done == 0) return true;
    take(field, step);
    return false;
  }

  void raise_if_any() {
    if (!first_) return;
    PyObject* const error = first_.release().ptr();
    PyErr_SetObject(reinterpret_cast<PyObject*>(Py_TYPE(error)), error);
    Py_DECREF(error);
    throw PythonError();
  }

 private:
  /// The exception that is set, with its traceback.
  static py::object fetch() {
    PyObject *type = nullptr, *value = nullptr, *traceback = nullptr;
    PyErr_Fetch(&type, &value, &traceback);
    PyErr_NormalizeException(&type, &value, &traceback);
    if (traceback != nullptr) PyException_SetTraceback(value, traceback);
    Py_XDECREF(type);
    Py_XDECREF(traceback);
    return steal_or_none(value);
  }

  /// Calls a helper; that it fails is reported, and changes nothing.
  static void tell(PyObject* helper, PyObject* const* arguments, std::size_t count) {
    PyObject* const done = PyObject_Vectorcall(helper, arguments, count, nullptr);
    if (done == nullptr) PyErr_WriteUnraisable(helper);
    Py_XDECREF(done);
  }

  void take(PyObject* field, const char* step) {
    py::object error = fetch();
    const py::object words = steal_or_none(PyUnicode_FromString(step));
    PyObject* const name = field == nullptr ? Py_None : field;
    if (!words) PyErr_Clear();
    PyObject* const said = words ? words.ptr() : Py_None;
    if (first_) {
      PyObject* const arguments[] = {first_.ptr(), error.ptr(), name, said};
      tell(helpers().later, arguments, 4);
      return;
    }
    first_ = std::move(error);
    PyObject* const arguments[] = {first_.ptr(), name, said};
    if (field != nullptr) tell(helpers().note, arguments, 3);
  }

  py::object first_;
};

// ---- A field of a call. ----

/// A field that was passed, and what became of it.
struct Taken {
  std::size_t index = 0;  // among the declared ones
  PyObject* object = nullptr;
  Side side = Side::kHost;           // where its memory is used
  const Storage* storage = nullptr;  // if it is one
  bool is_foreign = false;           // another library's: it knows nothing of gridbuf's stream
  bool is_acquired = false;
  bool is_open = false;  // marked as being written
  py::object touch;
  py::object release;
  py::object
      memory;  // a Buffer, in the object's own order; none for an ndarray, which is read in place
  py::object source;  // the Buffer in the annotation's order, where it has to be copied
  py::object copy;    // its copy on the side of the call
  py::object array;   // what the function gets
};

/// "field 'u', all dimensions".
std::string all_of(const FieldRule& rule) { return "field '" + rule.name + "', all dimensions"; }

/// A view of a Buffer with its dimensions in the annotation's order.
py::object in_order(const py::object& buffer, const BoundField& field, const FieldRule& rule) {
  if (field.is_in_order) return share(buffer.ptr());
  BufferDescriptor memory = array_in(buffer.ptr()).memory;
  memory.view.shape = field.memory.shape;
  memory.view.strides_bytes = field.memory.strides_bytes;
  return adopt_buffer(foreign_array(memory, rule.dims), dtype_of(buffer.ptr()), buffer.ptr(),
                      info_of(buffer.ptr()));
}

/// The Buffer as an array that the function can compute with: an ndarray, or CuPy's on a real
/// device. Of the emulated one it is an ndarray that only a kernel can touch.
py::object array_of(const py::object& buffer) {
  const BufferDescriptor& memory = array_in(buffer.ptr()).memory;
  if (is_host_readable(memory.device.type)) return ndarray_of(buffer.ptr());
  if (!emulated_device_is_on()) return make_cupy_view(buffer, /*sync=*/true);
  return make_ndarray(*dtype_of(buffer.ptr()), memory.view, memory.first_element(), memory.readonly,
                      buffer.ptr());
}

/// The names that an ndarray's Buffer has. Default names were given by nobody, so the annotation
/// decides.
std::optional<Dims> names_behind(PyObject* ndarray) {
  std::optional<Dims> dims = dims_behind(ndarray);
  if (dims && *dims == default_dims(dims->size())) return std::nullopt;
  return dims;
}

/// The names in a data interface's entry, else those that the object declares.
std::optional<Dims> foreign_names(const FieldRule& rule, PyObject* object, const Meaning& meaning,
                                  int ndim) {
  if (meaning.names.empty()) return declared_dims(object, ndim);
  const std::vector<std::string_view> names(meaning.names.begin(), meaning.names.end());
  absl::StatusOr<Dims> dims = parse_dims(names, ndim);
  if (dims.ok()) return *dims;
  raise(with_context(dims.status(), all_of(rule) + ": its dims must be " + to_string(rule.dims) +
                                        " in any order; rename them"));
}

Extents clamped(const Extents& index, const Extents& shape) {
  Extents inside;
  for (int axis = 0; axis < shape.size(); ++axis) {
    inside.push_back(shape[axis] == 0 ? 0 : std::min(index[axis], shape[axis] - 1));
  }
  return inside;
}

// ---- The call. ----

class Session {
 public:
  Session(const CallerSpec& spec, Passed& passed) : spec_(spec), passed_(passed) {}

  py::object run(PyObject* function) {
    py::object result;
    if (prepare()) {
      is_entered_ = true;
      failure_.attempt(nullptr, "run", [&] { result = invoke(function); }) && copy_back();
    }
    touch();
    release();
    failure_.raise_if_any();
    return result;
  }

 private:
  bool prepare() {
    return failure_.attempt(nullptr, "look at the arguments", [&] { find_fields(); }) &&
           each("acquire", [&](Taken& taken) { acquire(taken); }) &&
           each("read", [&](Taken& taken) { read(taken); }) &&
           failure_.attempt(nullptr, "bind", [&] { bind(); });
  }

  /// Attempts `step` for every field, up to the first that raises.
  template <class Step>
  bool each(const char* name, Step&& step) {
    for (Taken& taken : taken_) {
      PyObject* const field = spec_.fields[taken.index].name.ptr();
      if (!failure_.attempt(field, name, [&] { step(taken); })) return false;
    }
    return true;
  }

  const FieldRule& rule_of(const Taken& taken) const { return spec_.rules[taken.index]; }
  BoundField& bound_of(const Taken& taken) { return call_.fields[taken.index]; }
  bool is_written(const Taken& taken) const { return spec_.fields[taken.index].is_written; }

  PyObject** slot(std::size_t index) {
    const int place = passed_.places[index];
    if (place == kNowhere) return nullptr;
    return place >= 0 ? &passed_.positional[static_cast<std::size_t>(place)]
                      : &passed_.values[static_cast<std::size_t>(~place)];
  }

  void find_fields() {
    request_ = to_request(spec_, passed_);
    if (spec_.side == Side::kDevice) value_of(device_driver());
    taken_.reserve(spec_.fields.size());
    for (std::size_t f = 0; f < spec_.fields.size(); ++f) {
      PyObject** const given = slot(f);
      // Only an optional parameter may be left out; sort_passed has looked after that.
      const bool is_optional =
          !spec_.is_required[static_cast<std::size_t>(spec_.fields[f].parameter)];
      if (given == nullptr || (*given == Py_None && is_optional)) continue;
      Taken& taken = taken_.emplace_back();
      taken.index = f;
      taken.object = *given;
      taken.side = spec_.side;
    }
    arguments_.resize(spec_.fields.size());
    for (FieldArgument& argument : arguments_) argument.is_absent = true;
  }

  // ---- Acquire. ----

  void acquire(Taken& taken) {
    if (is_exact_ndarray(taken.object) || is_buffer(taken.object)) return;
    if (is_storage(taken.object)) return acquire_storage(taken);
    taken.is_foreign = true;
    std::optional<UseHooks> hooks = use_hooks(taken.object, data_side(spec_.side));
    if (!hooks) return;
    taken.side = side_of(hooks->side);
    if (hooks->acquire) steal(PyObject_CallNoArgs(hooks->acquire.ptr()));
    taken.is_acquired = true;
    taken.release = std::move(hooks->release);
  }

  void acquire_storage(Taken& taken) {
    taken.storage = &storage_of(taken.object);
    if (!taken.storage->has(spec_.side)) taken.side = other(spec_.side);
    if (taken.storage->is_ready(taken.side)) return;
    check(run_without_gil([&] { return taken.storage->read(taken.side); }));
  }

  // ---- Read. ----

  void read(Taken& taken) {
    FieldArgument& argument = arguments_[taken.index];
    argument.is_absent = false;
    if (is_exact_ndarray(taken.object)) {
      read_ndarray(taken, argument);
    } else {
      read_buffer(taken, argument);
    }
  }

  void read_ndarray(Taken& taken, FieldArgument& argument) {
    const NdarrayFields fields = fields_of(taken.object);
    const DTypePtr dtype = record_of(fields.dtype);
    argument.memory.shape = fields.shape;
    argument.memory.strides_bytes = fields.strides_bytes;
    argument.memory.itemsize_bytes = dtype->type.itemsize_bytes();
    argument.address = reinterpret_cast<std::uintptr_t>(fields.first_element);
    argument.dtype = dtype->type;
    // A plain array has names and an origin if it shows a whole Buffer, and else nothing.
    if (fields.base != nullptr) {
      argument.dims = names_behind(taken.object);
      argument.origin = declared_origin(taken.object);
    }
    check_declared(taken, fields.readonly, dtype);
    if (spec_.side == Side::kDevice) {
      taken.side = Side::kHost;
      taken.memory = import_buffer(taken.object, nullptr, {.use_names = false});
    }
  }

  void read_buffer(Taken& taken, FieldArgument& argument) {
    Meaning meaning;
    taken.memory = buffer_over(taken, meaning);
    const Array& array = array_in(taken.memory.ptr());
    argument.memory = array.memory.view;
    argument.address = reinterpret_cast<std::uintptr_t>(array.memory.first_element());
    argument.dtype = array.memory.dtype;
    if (taken.is_foreign) {
      argument.dims = foreign_names(rule_of(taken), taken.object, meaning, argument.memory.ndim());
      argument.origin = declared_origin(taken.object);
      argument.halo = meaning.halo;
      taken.touch = std::move(meaning.touch);
    } else {
      argument.dims = array.layout.dims();
      // A storage's origin is its lower halo, wherever it is aligned: setting a halo re-aligns
      // nothing.
      if (taken.storage != nullptr) {
        argument.halo = taken.storage->halo();
      } else {
        argument.origin = origin_of(array);
      }
    }
    if (reaches(other(spec_.side), array.memory.device.type) &&
        !reaches(spec_.side, array.memory.device.type)) {
      taken.side = other(spec_.side);
    } else {
      taken.side = spec_.side;
    }
    check_declared(taken, array.memory.readonly, dtype_of(taken.memory.ptr()));
  }

  /// A Buffer over the memory of the side that was acquired.
  py::object buffer_over(Taken& taken, Meaning& meaning) const {
    if (is_buffer(taken.object)) return share(taken.object);
    const DeviceType side = data_side(taken.side);
    if (taken.storage != nullptr) {
      return buffer_of_array(taken.object, side, Purpose::kParameters);
    }
    py::object buffer =
        import_or_none(taken.object, nullptr,
                       {.use_names = false, .acquired = taken.is_acquired, .side = side}, &meaning);
    if (buffer) return buffer;
    raise(ErrorClass::kType,
          Problem{all_of(rule_of(taken)) + ": the argument", describe(taken.object),
                  "an array of " + rule_of(taken).dtype.name() + " over " +
                      to_string(rule_of(taken).dims),
                  "pass something that offers its memory: an ndarray, a storage, DLPack, ...; "
                  "for a DataArray, import gridbuf.xarray"});
  }

  /// What the rules on descriptors cannot see: fields of structured types, and that memory which
  /// the stencil is declared to write can be written.
  void check_declared(const Taken& taken, bool readonly, const DTypePtr& dtype) const {
    const FieldRule& rule = rule_of(taken);
    if (dtype->type.kind() == Kind::kStructured &&
        !is_same_type(dtype, spec_.fields[taken.index].dtype)) {
      check(wrong_dtype(rule, dtype->name));
    }
    if (readonly && spec_.writes_are_declared && is_written(taken)) {
      raise(ErrorClass::kValue,
            Problem{all_of(rule) + ": its memory", "read-only",
                    "writable, as stencil '" + spec_.name + "' is declared to write it",
                    "pass a writable array, or take it out of writes="});
    }
  }

  // ---- Bind. ----

  void bind() {
    call_ = value_of(bind_call(spec_.rules, arguments_, request_));
    check_memories();
    note_copies();
    for (Taken& taken : taken_) make_array(taken);
    for (Taken& taken : taken_) begin_write(taken, Coverage::kPart);
  }

  bool is_wrong(const Taken& taken) const { return taken.side != spec_.side; }

  /// Copies are made as the rules want them.
  void check_memories() {
    for (const Taken& taken : taken_) {
      if (is_wrong(taken)) continue;
      const FieldRule& rule = rule_of(taken);
      const std::uintptr_t address = arguments_[taken.index].address;
      check(check_memory(rule, bound_of(taken), address));
      if (rule.preferred == MemoryRule()) continue;
      const std::string slow = slow_memory(rule, bound_of(taken), address);
      if (slow.empty()) continue;
      const std::string text = "stencil '" + spec_.name + "': " + slow;
      check(PyErr_WarnEx(helpers().slow_warning, text.c_str(), kCallSite));
    }
  }

  /// One warning for all fields whose memory only the other side has, or the error.
  void note_copies() {
    std::string names;
    for (const Taken& taken : taken_) {
      if (!is_wrong(taken)) continue;
      if (!spec_.copies_wrong_device) raise_wrong_device(taken);
      names += (names.empty() ? "'" : ", '") + rule_of(taken).name + "'";
    }
    if (names.empty()) return;
    const char* const here = spec_.side == Side::kHost ? "host" : "device";
    const char* const there = spec_.side == Side::kHost ? "device" : "host";
    const std::string text = "stencil '" + spec_.name + "' computes on the " + here +
                             ", but only the " + there + " has the memory of field " + names +
                             ": each call copies it; allocate it where it is used, or with "
                             "managed=\"gt4py\"";
    check(PyErr_WarnEx(helpers().copy_warning, text.c_str(), kCallSite));
  }

  [[noreturn]] void raise_wrong_device(const Taken& taken) const {
    const bool on_host = spec_.side == Side::kHost;
    raise(ErrorClass::kNoSuchBuffer,
          Problem{all_of(rule_of(taken)) + ": its memory",
                  on_host ? "on the device only" : "on the host only",
                  std::string("on the ") + (on_host ? "host" : "device") + ", where stencil '" +
                      spec_.name + "' computes",
                  "copy it with gridbuf.storage.storage(array, device=...), or let the stencil do "
                  "so with on_wrong_device=\"copy\""});
  }

  void make_array(Taken& taken) {
    const BoundField& field = bound_of(taken);
    if (is_wrong(taken)) {
      taken.source = in_order(taken.memory, field, rule_of(taken));
      taken.copy = copied(taken);
      taken.array = array_of(taken.copy);
    } else if (taken.memory) {
      taken.array = array_of(in_order(taken.memory, field, rule_of(taken)));
    } else {
      taken.array = field.is_in_order ? share(taken.object) : permuted(taken.object, field);
    }
    if (PyObject** const given = slot(taken.index)) *given = taken.array.ptr();
  }

  static py::object permuted(PyObject* ndarray, const BoundField& field) {
    const NdarrayFields fields = fields_of(ndarray);
    const DTypePtr dtype = record_of(fields.dtype);
    return make_ndarray(*dtype, field.memory, fields.first_element, fields.readonly, ndarray);
  }

  /// The elements on the side of the call, laid out and aligned as the stencil wants them.
  py::object copied(const Taken& taken) {
    const FieldRule& rule = rule_of(taken);
    const BoundField& field = bound_of(taken);
    const Array& array = array_in(taken.source.ptr());
    LayoutMap layout =
        rule.relied_on.layout.empty() ? rule.preferred.layout : rule.relied_on.layout;
    if (layout.empty()) layout = array.layout.layout();
    const Layout plan =
        value_of(make_plan({.shape = field.memory.shape,
                            .itemsize_bytes = field.memory.itemsize_bytes,
                            .layout = layout,
                            .alignment_bytes = std::max(rule.relied_on.alignment_bytes,
                                                        rule.preferred.alignment_bytes),
                            .aligned_index = clamped(field.origin, field.memory.shape),
                            .dims = rule.dims,
                            .dtype_name = rule.dtype.name()}));
    const MemoryKind kind = spec_.side == Side::kHost ? MemoryKind::kHost : MemoryKind::kDevice;
    py::object made = allocate_buffer(plan, dtype_of(taken.source.ptr()), {.memory = kind});
    copy_buffer(made.ptr(), taken.source.ptr());
    return made;
  }

  /// A storage's elements are marked before anything writes them.
  void begin_write(Taken& taken, Coverage coverage) {
    if (taken.storage == nullptr || !is_written(taken) || taken.storage->readonly()) return;
    if (is_wrong(taken) && !is_entered_) return;  // What is written first is its copy.
    check(run_without_gil([&] { return taken.storage->begin_write(taken.side, coverage); }));
    taken.is_open = true;
  }

  // ---- Run. ----

  py::object invoke(PyObject* function) {
    add_keywords();
    if (spec_.side == Side::kDevice) return invoke_on_device(function);
    std::vector<PyObject*>& all = passed_.positional;
    const std::size_t positional = all.size();
    const py::object names = passed_.names.empty() ? py::object() : to_tuple(passed_.names);
    all.insert(all.end(), passed_.values.begin(), passed_.values.end());
    return steal(PyObject_Vectorcall(function, all.data(), positional, names.ptr()));
  }

  void add_keyword(const char* name, py::object value) {
    kept_.push_back(steal(PyUnicode_InternFromString(name)));
    passed_.names.push_back(kept_.back().ptr());
    kept_.push_back(std::move(value));
    passed_.values.push_back(kept_.back().ptr());
  }

  /// origin and domain, where the function names them.
  void add_keywords() {
    if (spec_.passes_origin) {
      py::object origins = steal(PyDict_New());
      for (const Taken& taken : taken_) {
        const py::object origin = from_integers(bound_of(taken).origin.span());
        PyObject* const name = spec_.fields[taken.index].name.ptr();
        check(PyDict_SetItem(origins.ptr(), name, origin.ptr()));
      }
      add_keyword("origin", std::move(origins));
    }
    if (spec_.passes_domain) add_keyword("domain", from_integers(call_.domain.span()));
  }

  static py::object to_tuple(const std::vector<PyObject*>& items) {
    py::object tuple = steal(PyTuple_New(static_cast<Py_ssize_t>(items.size())));
    for (std::size_t i = 0; i < items.size(); ++i) {
      PyTuple_SET_ITEM(tuple.ptr(), static_cast<Py_ssize_t>(i), Py_NewRef(items[i]));
    }
    return tuple;
  }

  /// Python's part knows how to run a kernel: on_device(function, args, kwargs, places, arrays).
  py::object invoke_on_device(PyObject* function) {
    const py::object args = to_tuple(passed_.positional);
    const py::object kwargs = steal(PyDict_New());
    for (std::size_t i = 0; i < passed_.names.size(); ++i) {
      check(PyDict_SetItem(kwargs.ptr(), passed_.names[i], passed_.values[i]));
    }
    std::vector<PyObject*> arrays;
    const py::object places = steal(PyList_New(0));
    for (const Taken& taken : taken_) {
      arrays.push_back(taken.array.ptr());
      const int place = passed_.places[taken.index];
      const py::object key = place >= 0 ? steal(PyLong_FromLong(place))
                                        : share(passed_.names[static_cast<std::size_t>(~place)]);
      check(PyList_Append(places.ptr(), key.ptr()));
    }
    const py::object list = to_tuple(arrays);
    PyObject* const arguments[] = {function, args.ptr(), kwargs.ptr(), places.ptr(), list.ptr()};
    return steal(PyObject_Vectorcall(helpers().on_device, arguments, 5, nullptr));
  }

  // ---- Copy back, touch, release. ----

  bool copy_back() {
    return each("copy back", [&](Taken& taken) {
      if (!taken.copy || !is_written(taken)) return;
      if (array_in(taken.source.ptr()).memory.readonly) return;  // Presumed written, but was not.
      begin_write(taken, Coverage::kAll);
      copy_buffer(taken.source.ptr(), taken.copy.ptr());
    });
  }

  void touch() {
    for (Taken& taken : taken_) {
      PyObject* const name = spec_.fields[taken.index].name.ptr();
      failure_.attempt(name, "touch", [&] { touch_one(taken); });
    }
  }

  void touch_one(Taken& taken) {
    if (std::exchange(taken.is_open, false)) taken.storage->end_write(taken.side);
    if (!is_entered_ || !is_written(taken)) return;
    if (taken.storage != nullptr) return touch_storage(taken.object, taken.side);
    if (!taken.memory || array_in(taken.memory.ptr()).memory.readonly) return;
    if (taken.is_foreign && taken.side == Side::kDevice) {
      // Its library knows nothing of the stream that gridbuf works on.
      steal(PyObject_CallMethod(taken.memory.ptr(), "synchronize", nullptr));
    }
    if (taken.touch) steal(PyObject_CallNoArgs(taken.touch.ptr()));
  }

  /// In reverse order, as one lets go of locks.
  void release() {
    for (std::size_t i = taken_.size(); i > 0; --i) {
      Taken& taken = taken_[i - 1];
      const py::object hook = std::move(taken.release);
      if (!hook) continue;
      PyObject* const name = spec_.fields[taken.index].name.ptr();
      failure_.attempt(name, "release", [&] { steal(PyObject_CallNoArgs(hook.ptr())); });
    }
  }

  /// The frame of `Stencil.__call__` lies between a call and this module.
  static constexpr Py_ssize_t kCallSite = 2;

  const CallerSpec& spec_;
  Passed& passed_;
  CallRequest request_;
  std::vector<Taken> taken_;
  std::vector<FieldArgument> arguments_;
  BoundCall call_;
  std::vector<py::object> kept_;
  Failure failure_;
  bool is_entered_ = false;  // the function has been called: something may have been written
};

}  // namespace

py::object run_call(const CallerSpec& spec, Passed& passed, PyObject* function) {
  return Session(spec, passed).run(function);
}

}  // namespace gridbuf::python::calls
