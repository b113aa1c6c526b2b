// Where values come from, and how they get to the side that is written.

module;

#include <Python.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

module gridbuf.python.storage;

import gridbuf.alloc;
import gridbuf.array;
import gridbuf.base;
import gridbuf.device;
import gridbuf.interface.numpy;
import gridbuf.interface;
import gridbuf.layout.view;
import gridbuf.layout;
import gridbuf.python.buffer;
import gridbuf.python.support;
import gridbuf.storage;

namespace gridbuf::python::storages {
namespace {

bool reached_by_device(const BufferDescriptor& memory) {
  return has_side(memory, DeviceType::kCuda) && memory.device.type != DeviceType::kCudaHost;
}

/// What is to be assigned: elements that the host reads, or a Buffer on a device.
struct Value {
  py::object array;      // an ndarray; none if the host cannot read the elements
  py::object on_device;  // a Buffer; none if the elements are the host's
};

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
  const Array& array = array_in(buffer.ptr());
  const IndexMap map = value_of(named_broadcast_map(
      {.dims = names, .shape = array.shape()}, {.dims = target.dims(), .shape = target.shape()}));
  return adopt_buffer(foreign_array(array.view(map).memory, target.dims()), dtype_of(buffer.ptr()),
                      buffer.ptr(), info_of(buffer.ptr()));
}

/// A foreign array. One that has both sides is read on the one that the target prefers; one that
/// names its dimensions is seen as `target`, where there is one.
Value foreign_value(PyObject* object, DeviceType preferred, const Storage* target = nullptr) {
  Value value;
  const bool is_plain = is_ndarray(object) || is_scalar(object) || PyList_Check(object) != 0 ||
                        PyTuple_Check(object) != 0;
  py::object buffer;
  if (is_buffer(object)) {
    buffer = share(object);
  } else if (!is_plain) {
    Meaning meaning;
    buffer = import_or_none(
        object, nullptr, {.allow_copied = true, .use_names = false, .side = preferred}, &meaning);
    if (buffer && target != nullptr) {
      const int ndim = array_in(buffer.ptr()).memory.view.ndim();
      const std::optional<Dims> names = names_of(object, meaning, ndim);
      if (names) buffer = paired(buffer, *names, *target);
    }
  }
  if (!buffer) {
    value.array = as_ndarray(object);
    return value;
  }
  const BufferDescriptor& memory = array_in(buffer.ptr()).memory;
  if (preferred == DeviceType::kCuda && reached_by_device(memory)) {
    value.on_device = std::move(buffer);
  } else {
    value.array = is_host_readable(memory.device.type)
                      ? ndarray_of(buffer.ptr())
                      : ndarray_of(copy_of(buffer.ptr(), MemoryKind::kHost).ptr());
  }
  return value;
}

/// A storage's elements, up to date: on the device if they shall go there and are there.
Value elements_on(const StorageObject& source, const Storage& seen, Side side) {
  Value value;
  if (side == Side::kDevice && seen.has(Side::kDevice)) {
    up_to_date(seen, Side::kDevice);
    value.on_device = own_buffer(seen, source.dtype, Side::kDevice);
  } else {
    value.array = host_elements(source, seen);
  }
  return value;
}

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

// ---- To the host: copied as numpy.copyto would, broadcast and converted. ----

bool has_dtype(const py::object& array, const DTypePtr& dtype) {
  const DTypePtr own = record_or_none(dtype_of_ndarray(array.ptr()));
  return own && is_same_type(own, dtype);
}

/// NumPy's rule for the shapes of an assignment; its own error if they do not fit.
void check_broadcasts(const Extents& from, const Extents& to) {
  Extents trimmed = from;  // Leading extents of 1 are dropped in an assignment.
  while (trimmed.size() > to.size() && trimmed[0] == 1) trimmed.erase(0);
  const absl::StatusOr<IndexMap> map = broadcast_map(trimmed, to, 1);
  if (map.ok()) return;
  raise(
      ErrorClass::kValue,
      Problem{"the value's shape", to_string(from), "one that NumPy broadcasts to " + to_string(to),
              "assign to a part of that shape, or name the value's dimensions"});
}

void write_on_host(const StorageObject& object, const Storage& view, const py::object& array) {
  // Everything that can fail fails before the write begins: it takes over without a copy what it
  // will write wholly. A conversion may fail at any element, so it begins with all that was there.
  const Extents from = fields_of(array.ptr()).shape;
  check_broadcasts(from, view.shape());
  const Coverage coverage = has_dtype(array, object.dtype) ? Coverage::kAll : Coverage::kPart;
  Writing writing(object, view, Side::kHost, coverage);
  const py::object owner = own_buffer(view, object.dtype, Side::kHost);
  const py::object elements = own_ndarray(view, object.dtype, /*readonly=*/false, owner.ptr());
  copy_arrays(elements.ptr(), array.ptr());
  writing.done();
}

// ---- To the device: a transfer of elements that have the target's type. ----

/// The value's elements in the target's type, in host memory of the value's own shape: what is
/// broadcast is repeated on the device. Of the target's shape they have its order of strides, too,
/// so that the transfer is a dense one.
py::object staged(const Storage& view, const DTypePtr& dtype, const py::object& array) {
  Extents shape = fields_of(array.ptr()).shape;
  check_broadcasts(shape, view.shape());
  while (shape.size() > view.ndim()) shape.erase(0);  // Leading extents of 1.
  LayoutRequest request{
      .shape = shape, .itemsize_bytes = dtype->type.itemsize_bytes(), .dtype_name = dtype->name};
  if (shape == view.shape()) request.layout = view.layout();
  const py::object buffer = allocate_buffer(value_of(make_plan(request)), dtype, {});
  copy_arrays(ndarray_of(buffer.ptr()).ptr(), array.ptr());
  return share(buffer.ptr());
}

void write_on_device(const StorageObject& object, const Storage& view, const py::object& source) {
  Writing writing(object, view, Side::kDevice, Coverage::kAll);
  copy_buffer(own_buffer(view, object.dtype, Side::kDevice).ptr(), source.ptr());
  writing.done();
}

/// Whether a transfer can read the value where it is: same type, same shape, nothing repeated.
bool can_be_transferred(const py::object& buffer, const Storage& view, const DTypePtr& dtype) {
  const BufferDescriptor& memory = array_in(buffer.ptr()).memory;
  if (!is_same_type(dtype_of(buffer.ptr()), dtype)) return false;
  if (!(memory.view.shape == view.shape())) return false;
  for (int axis = 0; axis < view.ndim(); ++axis) {
    if (memory.view.strides_bytes[axis] == 0 && view.shape()[axis] > 1) return false;
  }
  return true;
}

py::object on_host(const Value& value) {
  if (value.array) return share(value.array.ptr());
  return ndarray_of(copy_of(value.on_device.ptr(), MemoryKind::kHost).ptr());
}

void write_value(const StorageObject& object, const Storage& view, Side side, const Value& value) {
  if (side == Side::kHost) return write_on_host(object, view, on_host(value));
  if (value.on_device && can_be_transferred(value.on_device, view, object.dtype)) {
    return write_on_device(object, view, value.on_device);
  }
  write_on_device(object, view, staged(view, object.dtype, on_host(value)));
}

/// A number or a foreign array, which is paired by its names if it has some and that is wanted.
void assign_array(const StorageObject& object, const Storage& view, PyObject* value, bool by_name) {
  Side side = target_side(view, value);
  if (is_scalar(value)) {
    const Value element{.array = make_assigned(*object.dtype, value), .on_device = py::object()};
    return write_value(object, view, side, element);
  }
  const DeviceType preferred = view.has(Side::kDevice) ? DeviceType::kCuda : DeviceType::kHost;
  const Value found = foreign_value(value, preferred, by_name ? &view : nullptr);
  if (found.on_device) side = Side::kDevice;
  write_value(object, view, side, found);
}

}  // namespace

void assign_by_position(const StorageObject& object, PyObject* value) {
  const Storage& target = object.storage;
  if (!is_storage(value)) return assign_array(object, target, value, /*by_name=*/false);
  const StorageObject& source = *object_of(value);
  const Side side = target_side(target, value);
  write_value(object, target, side, elements_on(source, source.storage, side));
}

Storage named_like(const Storage& value, const Storage& target) {
  const IndexMap map =
      value_of(named_broadcast_map({.dims = value.dims(), .shape = value.shape()},
                                   {.dims = target.dims(), .shape = target.shape()}));
  return value.view(map);
}

py::object readable_on_host(PyObject* value) {
  if (is_storage(value)) return host_elements(*object_of(value), object_of(value)->storage);
  return foreign_value(value, DeviceType::kHost).array;
}

void assign(const StorageObject& object, const Storage& view, PyObject* value) {
  if (!is_storage(value)) return assign_array(object, view, value, /*by_name=*/true);
  if (is_same(view, object_of(value)->storage)) return;
  const StorageObject& source = *object_of(value);
  const Side side = target_side(view, value);
  const Storage seen = named_like(without_new_axes(source), view);
  write_value(object, view, side, elements_on(source, seen, side));
}

}  // namespace gridbuf::python::storages
