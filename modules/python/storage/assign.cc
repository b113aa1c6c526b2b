// Assignment to storages, and `gridbuf.copyto` of any arrays.

module;

#include <Python.h>

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "modules/python/arguments/docstrings.h"

module gridbuf.python;

namespace gridbuf::python::storages {
namespace {

/// Elements to be read: an ndarray, or a Buffer over memory that the host cannot read.
struct Value {
  py::object array = {};
  py::object on_device = {};
};

/// The names that a foreign array declares for its dimensions, in its entry or itself; nothing if
/// it declares none. ValueError for names that no storage has.
std::optional<Dims> names_of(PyObject* object, const Meaning& meaning, int ndim) {
  if (meaning.names.empty()) {
    const std::optional<Dims> declared = declared_dims(object, ndim);
    return declared ? std::optional(with_starts_of(object, *declared)) : std::nullopt;
  }
  const absl::StatusOr<Dims> dims = dims_of(meaning, ndim);
  if (dims.ok()) return with_starts_of(object, *dims);
  raise(with_context(dims.status(),
                     "the value's names cannot be paired with the storage's; assign its elements"));
}

/// A Buffer seen with the dimensions of `target`: permuted, and repeated along those it lacks.
py::object paired(const py::object& buffer, const Dims& names, const Storage& target) {
  const Array& array = array_in(buffer.ptr());
  const IndexMap map = value_of(named_broadcast_map(
      {.dims = names, .shape = array.shape()}, {.dims = target.dims(), .shape = target.shape()}));
  return adopt_buffer(dtype_of(buffer.ptr()), buffer.ptr(), [&] {
    return foreign_array(BufferDescriptor(array.view(map).memory()), target.dims(), array.info());
  });
}

/// Whether a transfer can read the source where it is: same type, same shape, nothing repeated.
bool can_be_transferred(const py::object& target, const py::object& source) {
  const StridedView& to = array_in(target.ptr()).memory().view;
  const StridedView& from = array_in(source.ptr()).memory().view;
  if (!is_same_type(dtype_of(target.ptr()), dtype_of(source.ptr()))) return false;
  if (!(to.shape == from.shape)) return false;
  for (int axis = 0; axis < from.ndim(); ++axis) {
    if (from.strides_bytes[axis] == 0 && from.shape[axis] > 1) return false;
  }
  return true;
}

Extents shape_of(const Value& value) {
  return value.array ? fields_of(value.array.ptr()).shape
                     : array_in(value.on_device.ptr()).memory().view.shape;
}

/// The shape as NumPy assigns it: leading extents of 1 that are too many are dropped.
Extents trimmed(Extents shape, int ndim) {
  while (shape.size() > ndim && shape[0] == 1) shape.erase(0);
  return shape;
}

/// The elements of an array, number or sequence that is not a storage. An array with both sides is
/// read on `side`. One that names its dimensions is seen as `target`, if that is not null.
/// `meaning` receives what else the object says.
Value open_value(PyObject* object, Side side, Meaning& meaning, const Storage* target = nullptr) {
  const bool is_plain = is_exact_ndarray(object) || is_scalar(object) ||
                        PyList_Check(object) != 0 || PyTuple_Check(object) != 0;
  py::object buffer;
  if (!is_plain) {
    buffer = import_or_none(
        object, nullptr,
        {.allow_copied = true, .use_names = false, .side = side, .purpose = Purpose::kReading},
        &meaning);
  }
  // What offers no memory is NumPy's to read.
  if (!buffer) return {as_ndarray(object)};
  if (target != nullptr && !is_buffer(object)) {
    const std::optional<Dims> names =
        names_of(object, meaning, array_in(buffer.ptr()).memory().view.ndim());
    if (names) buffer = paired(buffer, *names, *target);
  }
  const DeviceType type = array_in(buffer.ptr()).memory().device.type;
  const bool stays = side == Side::kDevice && memory_kind(type) == MemoryKind::kManaged;
  if (is_host_readable(type) && !stays) return {ndarray_of(buffer.ptr())};
  return {.on_device = std::move(buffer)};
}

/// ValueError unless NumPy assigns such a value to elements of shape `to`. `name` and `advice` are
/// those of the message.
void check_broadcasts(const Value& value, const Extents& to, std::string_view name,
                      std::string_view advice) {
  const Extents from = shape_of(value);
  if (from == to || broadcast_map(trimmed(from, to.size()), to, 1).ok()) return;
  raise(ErrorClass::kValue,
        Problem{name, to_string(from), "one that NumPy broadcasts to " + to_string(to), advice});
}

/// The value as an ndarray; copied from a device.
py::object on_host(const Value& value) {
  if (value.array) return share(value.array.ptr());
  return ndarray_of(copy_of(value.on_device.ptr(), MemoryKind::kHost).ptr());
}

/// A Buffer that copy_buffer can copy to `target`, a Buffer too: the value itself, or its elements
/// converted by `rule` on the host, in the value's own shape. Repeated elements cross once.
py::object transferable(const Value& value, const py::object& target, const CopyRule& rule) {
  const Array& to = array_in(target.ptr());
  const DTypePtr& dtype = dtype_of(target.ptr());
  if (rule.mask == nullptr) {
    py::object source = share(value.on_device.ptr());
    if (value.array && record_or_none(dtype_of_ndarray(value.array.ptr()))) {
      source = import_buffer(value.array.ptr(), nullptr, {.use_names = false});
    }
    if (source && can_be_transferred(target, source)) return source;
  }
  const py::object elements = on_host(value);
  py::object staging;
  if (rule.mask != nullptr) {
    staging = copy_of(target.ptr(), MemoryKind::kHost);
  } else {
    const Extents& whole = to.shape();
    LayoutRequest request{.shape = trimmed(fields_of(elements.ptr()).shape, whole.size()),
                          .itemsize_bytes = dtype->type.itemsize_bytes(),
                          .dtype_name = dtype->name};
    if (is_host_readable(to.memory().device.type))
      request.shape = whole;  // No transfer repeats it.
    if (request.shape == whole)
      request.layout = to.layout().layout_map();  // So that the transfer is dense.
    staging = allocate_buffer(value_of(make_plan(request)), dtype, {});
  }
  copy_arrays(ndarray_of(staging.ptr()).ptr(), elements.ptr(), rule);
  return staging;
}

// ---- Writing. ----

/// The side that is written, where there is a choice: the device's if the value is there (F, GDP-3
/// final, "Choosing the Device").
Side target_side(const Storage& target, PyObject* value) {
  if (!target.has(Side::kDevice)) return Side::kHost;
  if (!target.has(Side::kHost)) return Side::kDevice;
  if (!is_storage(value)) return Side::kHost;  // Other arrays: when they have been looked at.
  const Storage& source = object_of(value)->storage();
  const bool on_device = source.has(Side::kDevice) && source.is_current(Side::kDevice);
  return on_device ? Side::kDevice : Side::kHost;
}

/// Whether the value is the target itself, seen the same way: what `a[i] += x` ends with.
bool is_same(const Storage& a, const Storage& b) {
  if (!a.shares_base(b) || !(a.dims() == b.dims())) return false;
  const Side side = reading_side(a);
  return a.memory(side).first_element() == b.memory(side).first_element() &&
         a.memory(side).view == b.memory(side).view;
}

/// Everything that can fail fails before the write begins: it takes over without a copy what it
/// will write wholly. A conversion on the host may fail at any element, so that it begins with all
/// that was there.
void write_value(const StorageObject& object, const Storage& view, Side side, const Value& value) {
  check_broadcasts(value, view.shape(), "the value's shape",
                   "assign to a part of that shape, or name the value's dimensions");
  const py::object target = own_buffer(view, object.dtype, side);
  if (side == Side::kDevice) {
    const py::object source = transferable(value, target, {});
    return write(object, view, side, Coverage::kAll,
                 [&] { copy_buffer(target.ptr(), source.ptr()); });
  }
  const py::object array = on_host(value);
  const DTypePtr dtype = record_or_none(dtype_of_ndarray(array.ptr()));
  const bool converts = !dtype || !is_same_type(dtype, object.dtype);
  write(object, view, side, converts ? Coverage::kPart : Coverage::kAll, [&] {
    copy_arrays(own_ndarray(view, object.dtype, /*readonly=*/false, target.ptr()).ptr(),
                array.ptr());
  });
}

/// The source seen with the dimensions of `target`, by their names.
Storage named_like(const Storage& source, const Storage& target) {
  return source.view(
      value_of(named_broadcast_map({.dims = source.dims(), .shape = source.shape()},
                                   {.dims = target.dims(), .shape = target.shape()})));
}

/// The attribute `_gridbuf_starts`, a tuple; none without it.
py::object declared_starts(PyObject* array) {
  if (is_exact_ndarray(array) || is_scalar(array)) return py::object();
  static AttributeName name("_gridbuf_starts");
  return optional_attribute(array, name);
}

/// ValueError if the arrays begin at different indices, where both say it.
void check_starts(PyObject* target, PyObject* source) {
  const py::object own = declared_starts(target);
  const py::object other = declared_starts(source);
  if (!own || !other || own.equal(other)) return;
  raise(ErrorClass::kValue, Problem{"the start of src's ranges", describe(other.ptr()),
                                    "that of dst's, " + describe(own.ptr()),
                                    "restrict both fields to their common points, or pass "
                                    "field.ndarray, which has no range"});
}

// ---- copyto. ----

/// The arguments of copyto; borrowed. `casting` is a str that NumPy knows.
struct CopyArguments {
  PyObject* target = nullptr;
  PyObject* source = nullptr;
  PyObject* casting = nullptr;
  PyObject* where = nullptr;  // null: everywhere
};

/// The mask as an ndarray of bool; none for True.
py::object open_mask(PyObject* where) {
  if (where == nullptr || where == Py_True) return py::object();
  Meaning meaning;
  py::object mask = on_host(open_value(where, Side::kHost, meaning));
  const DTypePtr dtype = record_or_none(dtype_of_ndarray(mask.ptr()));
  if (dtype && dtype->type.kind() == Kind::kBool) return mask;
  raise(ErrorClass::kType, Problem{"where's dtype", describe(dtype_of_ndarray(mask.ptr())), "bool",
                                   "pass a comparison such as array > 0, or where.astype(bool)"});
}

/// Between two Buffers of which a device has at least one.
void copy_by_device(const py::object& target, const Value& source, const CopyRule& rule) {
  const BufferDescriptor& memory = array_in(target.ptr()).memory();
  if (memory.readonly) {
    raise(ErrorClass::kValue, Problem{"dst", "read-only", "memory that may be written",
                                      "pass a writable array, or copy into a new one"});
  }
  check_broadcasts(source, memory.view.shape, "src's shape",
                   "copy into a part of that shape, or add dimensions with array[:, None]");
  copy_buffer(target.ptr(), transferable(source, target, rule).ptr());
}

/// A value becomes one element of the target's type: Python's numbers do not have an element type.
Value open_source(const CopyArguments& given, PyObject* dtype, bool on_device) {
  if (is_scalar(given.source) && !is_ndarray(given.source)) {
    return {make_element(dtype, given.source, given.casting)};
  }
  Meaning unused;
  return open_value(given.source, on_device ? Side::kDevice : Side::kHost, unused);
}

/// Into an array of the host.
void copy_to_host(const CopyArguments& given, const py::object& target, const CopyRule& rule) {
  PyObject* const dtype = dtype_of_ndarray(target.ptr());
  const Value source = open_source(given, dtype, /*on_device=*/false);
  const bool converts = source.array || dtype_of(source.on_device.ptr())->numpy.ptr() != dtype;
  if (converts || rule.mask != nullptr) {
    return copy_arrays(target.ptr(), on_host(source).ptr(), rule);
  }
  copy_by_device(import_buffer(target.ptr(), nullptr, {.use_names = false}), source, rule);
}

/// Between arrays that are not storages.
void copy_any(const CopyArguments& given) {
  check_starts(given.target, given.source);
  Meaning meaning;
  py::object target = share(given.target);
  if (!is_exact_ndarray(given.target)) {
    target =
        import_buffer(given.target, nullptr, {.use_names = false, .side = Side::kHost}, &meaning);
    const bool on_host = is_host_readable(array_in(target.ptr()).memory().device.type);
    if (on_host) target = ndarray_of(target.ptr());
  }
  const py::object mask = open_mask(given.where);
  const CopyRule rule{.casting = given.casting, .mask = mask.ptr()};
  if (is_buffer(target.ptr())) {
    PyObject* const dtype = dtype_of(target.ptr())->numpy.ptr();
    copy_by_device(target, open_source(given, dtype, /*on_device=*/true), rule);
    // The library of foreign memory knows nothing of the stream that gridbuf works on.
    if (!is_buffer(given.target)) {
      steal(PyObject_CallMethod(target.ptr(), "synchronize", nullptr));
    }
  } else {
    copy_to_host(given, target, rule);
  }
  if (meaning.touch) steal(PyObject_CallNoArgs(meaning.touch.ptr()));
}

/// Storages join by the names of their dimensions, which is written in Python.
void copy_storages(const CopyArguments& given) {
  const py::object module = steal(PyImport_ImportModule("gridbuf.storage._functions"));
  PyObject* const where = given.where == nullptr ? Py_True : given.where;
  const py::object done = steal(PyObject_CallMethod(module.ptr(), "copyto", "OOOO", given.target,
                                                    given.source, given.casting, where));
  if (done.ptr() != Py_NotImplemented) return;
  raise(ErrorClass::kType,
        Problem{"an operand", "neither an array whose memory can be reached nor a value",
                "one of them", "make an array of it first, for example with numpy.asarray"});
}

constexpr Signature<CopyArguments, 4> kCopyto{"copyto",
                                              4,
                                              2,
                                              {{{"dst", &CopyArguments::target},
                                                {"src", &CopyArguments::source},
                                                {"casting", &CopyArguments::casting},
                                                {"where", &CopyArguments::where}}}};

py::object copyto(const CopyArguments& passed) {
  CopyArguments given = passed;
  given.casting = to_casting(passed.casting);
  if (given.casting == nullptr) given.casting = same_kind_casting();
  if (given.where == Py_True) given.where = nullptr;
  const bool has_storage = is_storage(given.target) || is_storage(given.source) ||
                           (given.where != nullptr && is_storage(given.where));
  has_storage ? copy_storages(given) : copy_any(given);
  return share(Py_None);
}

PyMethodDef functions[] = {
    definition_of<kCopyto, copyto>(doc("copyto")),
    {nullptr, nullptr, 0, nullptr},
};

}  // namespace

py::object readable_on_host(PyObject* value) {
  if (is_storage(value)) return host_elements(*object_of(value), object_of(value)->storage());
  Meaning meaning;
  return is_ndarray(value) ? as_ndarray(value) : on_host(open_value(value, Side::kHost, meaning));
}

Dims with_starts_of(PyObject* array, const Dims& dims) {
  const py::object starts = declared_starts(array);
  return starts && !dims.empty() ? starting_at(starts.ptr(), dims) : dims;
}

void assign(const StorageObject& object, const Storage& view, PyObject* value, bool by_name) {
  Side side = target_side(view, value);
  Value found;
  if (is_storage(value)) {
    const StorageObject& source = *object_of(value);
    if (is_same(view, source.storage())) return;
    const Storage seen = by_name ? named_like(source.storage(), view) : source.storage();
    if (side == Side::kDevice && seen.has(Side::kDevice)) {
      up_to_date(seen, Side::kDevice);
      found.on_device = own_buffer(seen, source.dtype, Side::kDevice);
    } else {
      found.array = host_elements(source, seen);
    }
  } else if (is_scalar(value)) {
    found.array = make_assigned(*object.dtype, value);
  } else if (is_ndarray(value)) {
    found.array = as_ndarray(value);
  } else {
    Meaning meaning;
    found = open_value(value, view.has(Side::kDevice) ? Side::kDevice : Side::kHost, meaning,
                       by_name ? &view : nullptr);
    if (found.on_device && view.has(Side::kDevice)) side = Side::kDevice;
  }
  write_value(object, view, side, found);
}

void add_copyto_function(PyObject* module) { check(PyModule_AddFunctions(module, functions)); }

}  // namespace gridbuf::python::storages
