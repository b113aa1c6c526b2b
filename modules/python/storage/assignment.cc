// Where values come from, and how they get to the side that is written; copies and pickles.

module;

#include <Python.h>

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

module gridbuf.python.storage;

namespace gridbuf::python::storages {
namespace {

// ---- Values. ----

/// The names that a foreign array declares for its dimensions, in its entry or itself; nothing if
/// it declares none. ValueError for names that no storage has.
std::optional<Dims> names_of(PyObject* object, const Meaning& meaning, int ndim) {
  if (meaning.names.empty()) return declared_dims(object, ndim);
  const std::vector<std::string_view> names(meaning.names.begin(), meaning.names.end());
  const absl::StatusOr<Dims> dims = parse_dims(names, ndim);
  if (dims.ok()) return *dims;
  raise(with_context(dims.status(),
                     "the value's own names cannot be paired with the storage's; rename its "
                     "dimensions, or assign its elements without them"));
}

/// A Buffer seen with the dimensions of `target`: permuted, and repeated along those it lacks.
py::object paired(const py::object& buffer, const Dims& names, const Storage& target) {
  BufferState state = state_of(buffer.ptr());
  const IndexMap map =
      value_of(named_broadcast_map({.dims = names, .shape = state.memory.view.shape},
                                   {.dims = target.dims(), .shape = target.shape()}));
  state.memory.view = apply(map, state.memory.view);
  state.dims = target.dims();
  state.layout = layout_of(state.memory.view.shape, state.memory.view.strides_bytes);
  state.aligned_index = Extents(target.ndim(), 0);
  return adopt_buffer(std::move(state), dtype_of(buffer.ptr()), buffer.ptr());
}

/// A storage's elements, up to date: on the device if they go there and are there.
Value elements_on(const StorageObject& source, const Storage& seen, Side side) {
  if (side == Side::kHost || !seen.has(Side::kDevice)) return {host_elements(source, seen)};
  up_to_date(seen, Side::kDevice);
  return {.on_device = own_buffer(seen, source.dtype, Side::kDevice)};
}

/// Whether a transfer can read the source where it is: same type, same shape, nothing repeated.
bool can_be_transferred(const py::object& target, const py::object& source) {
  const StridedView& to = state_of(target.ptr()).memory.view;
  const StridedView& from = state_of(source.ptr()).memory.view;
  if (!is_same_type(dtype_of(target.ptr()), dtype_of(source.ptr()))) return false;
  if (!(to.shape == from.shape)) return false;
  for (int axis = 0; axis < from.ndim(); ++axis) {
    if (from.strides_bytes[axis] == 0 && from.shape[axis] > 1) return false;
  }
  return true;
}

// ---- Writing. ----

/// The side that is written, where there is a choice: the device's if the value is there (F, GDP-3
/// final, "Choosing the Device").
Side target_side(const Storage& target, PyObject* value) {
  if (!target.has(Side::kDevice)) return Side::kHost;
  if (!target.has(Side::kHost)) return Side::kDevice;
  if (!is_storage(value)) return Side::kHost;  // Other arrays: when they have been looked at.
  const Storage& source = object_of(value)->storage;
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

Extents shape_of(const Value& value) {
  return value.array ? fields_of(value.array.ptr()).shape
                     : state_of(value.on_device.ptr()).memory.view.shape;
}

/// The shape as NumPy assigns it: leading extents of 1 that are too many are dropped.
Extents trimmed(Extents shape, int ndim) {
  while (shape.size() > ndim && shape[0] == 1) shape.erase(0);
  return shape;
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

/// A number or a foreign array, which is paired by its names if it has some and that is wanted.
void assign_array(const StorageObject& object, const Storage& view, PyObject* value, bool by_name) {
  Side side = target_side(view, value);
  Value found;
  if (is_scalar(value)) {
    found.array = make_assigned(*object.dtype, value);
  } else if (is_ndarray(value)) {
    found.array = as_ndarray(value);
  } else {
    Meaning meaning;
    found = open_value(value, view.has(Side::kDevice) ? DeviceType::kCuda : DeviceType::kHost,
                       meaning, by_name ? &view : nullptr);
    if (found.on_device && view.has(Side::kDevice)) side = Side::kDevice;
  }
  write_value(object, view, side, found);
}

}  // namespace

Value open_value(PyObject* object, DeviceType side, Meaning& meaning, const Storage* target) {
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
        names_of(object, meaning, state_of(buffer.ptr()).memory.view.ndim());
    if (names) buffer = paired(buffer, *names, *target);
  }
  const DeviceType type = state_of(buffer.ptr()).memory.device.type;
  const bool stays = side == DeviceType::kCuda && type == DeviceType::kCudaManaged;
  if (is_host_readable(type) && !stays) return {ndarray_of(buffer.ptr())};
  return {.on_device = std::move(buffer)};
}

void check_broadcasts(const Value& value, const Extents& to, std::string_view name,
                      std::string_view advice) {
  const Extents from = shape_of(value);
  if (from == to || broadcast_map(trimmed(from, to.size()), to, 1).ok()) return;
  raise(ErrorClass::kValue,
        Problem{name, to_string(from), "one that NumPy broadcasts to " + to_string(to), advice});
}

py::object on_host(const Value& value) {
  if (value.array) return share(value.array.ptr());
  return ndarray_of(copy_of(value.on_device.ptr(), MemoryKind::kHost).ptr());
}

py::object readable_on_host(PyObject* value) {
  if (is_storage(value)) return host_elements(*object_of(value), object_of(value)->storage);
  Meaning meaning;
  return is_ndarray(value) ? as_ndarray(value)
                           : on_host(open_value(value, DeviceType::kHost, meaning));
}

py::object transferable(const Value& value, const py::object& target, const CopyRule& rule) {
  const BufferState& to = state_of(target.ptr());
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
    const Extents& whole = to.memory.view.shape;
    LayoutRequest request{.shape = trimmed(fields_of(elements.ptr()).shape, whole.size()),
                          .itemsize_bytes = dtype->type.itemsize_bytes(),
                          .dtype_name = dtype->name};
    if (is_host_readable(to.memory.device.type)) request.shape = whole;  // No transfer repeats it.
    if (request.shape == whole) request.layout = to.layout;  // So that the transfer is dense.
    staging = allocate_buffer(value_of(make_plan(request)), {}, dtype, {});
  }
  copy_arrays(ndarray_of(staging.ptr()).ptr(), elements.ptr(), rule);
  return staging;
}

void assign_by_position(const StorageObject& object, PyObject* value) {
  const Storage& target = object.storage;
  if (!is_storage(value)) return assign_array(object, target, value, /*by_name=*/false);
  const StorageObject& source = *object_of(value);
  const Side side = target_side(target, value);
  write_value(object, target, side, elements_on(source, source.storage, side));
}

void assign(const StorageObject& object, const Storage& view, PyObject* value) {
  if (!is_storage(value)) return assign_array(object, view, value, /*by_name=*/true);
  const StorageObject& source = *object_of(value);
  if (is_same(view, source.storage)) return;
  const Side side = target_side(view, value);
  const Storage named = without_new_axes(source);
  const IndexMap map = value_of(named_broadcast_map({.dims = named.dims(), .shape = named.shape()},
                                                    {.dims = view.dims(), .shape = view.shape()}));
  write_value(object, view, side, elements_on(source, named.view(map), side));
}

// ---- Copies, conversions, fills and pickles. ----

py::object copy(const StorageObject& object) {
  const Storage source = object.storage;  // Of its own: the halo may be set meanwhile.
  return make_storage(value_of(run_without_gil([&] { return source.copy(); })), object.dtype);
}

py::object as_type(const StorageObject& object, py::handle dtype, py::handle casting,
                   py::handle copied) {
  const RequestedDType wanted = to_dtype(dtype.ptr());
  if (!wanted.subarray.empty()) {
    raise(ErrorClass::kType,
          Problem{"dtype", describe(dtype.ptr()), "a type without a shape", "pass its base type"});
  }
  const bool copies = to_flag(copied.ptr(), "copy");
  if (wanted.record->numpy.is(object.dtype->numpy)) {
    return copies ? copy(object) : share(object.self());
  }
  check_cast(object.dtype->numpy.ptr(), wanted.record->numpy.ptr(), to_casting(casting.ptr()));
  const StorageSource source = storage_source_of(object.self(), nullptr);
  py::object made = allocate_storage(resolve_storage_like(source, wanted.record->numpy.ptr(), {}));
  assign_by_position(*object_of(made.ptr()), host_elements(object, object.storage).ptr());
  return made;
}

void fill(const StorageObject& object, py::handle value) {
  if (!is_scalar(value.ptr())) {
    raise(ErrorClass::kType, Problem{"value", describe(value.ptr()), "one value",
                                     "assign arrays with storage[...] = value"});
  }
  check_writable(object);
  assign(object, object.storage, value.ptr());
}

/// _restore_storage(parameters, elements): `_parameters` without its last entry (an axis that None
/// has put in is an ordinary one afterwards), and the elements in row-major order. A raw function,
/// because pickle finds functions of pybind11 by no name.
PyObject* restore_storage(PyObject*, PyObject* const* arguments, Py_ssize_t count) {
  return guarded([&] {
    // What a pickle holds is checked like any other arguments: it may come from anywhere.
    if (count != 2 || PyTuple_Check(arguments[0]) == 0 || PyTuple_GET_SIZE(arguments[0]) != 9) {
      raise(ErrorClass::kType,
            "_restore_storage() takes parameters and elements; it is for unpickling alone");
    }
    const auto parameter = [&](Py_ssize_t i) { return PyTuple_GET_ITEM(arguments[0], i); };
    const StorageKeywords keywords{.shared = {.device = parameter(7),
                                              .layout = parameter(4),
                                              .alignment_size = parameter(5),
                                              .aligned_index = parameter(3),
                                              .dims = parameter(0),
                                              .halo = parameter(2)},
                                   .managed = parameter(8)};
    py::object made = allocate_storage(resolve_storage(parameter(1), parameter(6), keywords));
    const StorageObject& object = *object_of(made.ptr());
    // NumPy checks the length; a wrong one is its ValueError.
    const py::object numpy = steal(PyImport_ImportModule("numpy"));
    const py::object flat = steal(PyObject_CallMethod(numpy.ptr(), "frombuffer", "OO", arguments[1],
                                                      object.dtype->numpy.ptr()));
    const py::object shape = from_integers(object.storage.shape().span());
    assign_by_position(object,
                       steal(PyObject_CallMethod(flat.ptr(), "reshape", "(O)", shape.ptr())).ptr());
    return made;
  });
}

}  // namespace gridbuf::python::storages
