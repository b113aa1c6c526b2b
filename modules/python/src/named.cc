// Broadcasting by dimension names: gridbuf.layout.view for the array functions of storages, which
// are written in Python.
//
// A field is the plain tuple that a storage's `_parameters` begins with: (dims, shape, halo,
// aligned_index, layout, alignment_size). Tuples can be hashed, so that Python remembers the answer
// for operands it has seen before. Arguments are checked, as nothing stops a caller from passing
// something else.

#include <pybind11/pybind11.h>

#include <algorithm>
#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "modules/python/src/parts.h"

import gridbuf.base;
import gridbuf.layout;
import gridbuf.layout.view;
import gridbuf.python.buffer;
import gridbuf.python.storage;
import gridbuf.python.support;

namespace gridbuf::python {
namespace {

/// The entries of a tuple of at least `least`; borrowed, as a tuple does not change.
std::span<PyObject* const> entries_of(PyObject* tuple, Py_ssize_t least) {
  if (PyTuple_Check(tuple) == 0 || PyTuple_GET_SIZE(tuple) < least) {
    raise(ErrorClass::kType, {"an argument", describe(tuple),
                              "a tuple of at least " + std::to_string(least) + " entries",
                              "pass what a storage's _parameters begin with"});
  }
  return {&PyTuple_GET_ITEM(tuple, 0), static_cast<std::size_t>(PyTuple_GET_SIZE(tuple))};
}

NamedShape to_named_shape(PyObject* dims, PyObject* shape) {
  NamedShape array;
  array.shape = to_shape(shape, "elements");
  array.dims = to_dims(dims, array.shape.size());
  return array;
}

/// Checked by making the plan of such an array: what has one has valid parameters.
LayoutRequest to_field(PyObject* object) {
  const std::span<PyObject* const> entries = entries_of(object, 6);
  const NamedShape array = to_named_shape(entries[0], entries[1]);
  // An item size of 0: the shape of a view may be too large for new memory.
  LayoutRequest field{.shape = array.shape, .itemsize_bytes = 0, .dims = array.dims};
  field.halo = to_halo(entries[2], array.shape);
  field.aligned_index = to_integers(entries[3], "aligned_index");
  field.layout = to_layout(entries[4], array.dims);
  field.alignment_bytes = to_integer(entries[5], "alignment_size");
  const Layout plan = value_of(make_plan(field));
  field.layout = plan.layout();  // Filled in where they were empty.
  field.aligned_index = plan.aligned_index();
  return field;
}

Axes to_reduced_axes(PyObject* object, int ndim) {
  const Extents given = to_integers(object, "axes");
  Axes axes;
  for (int axis = 0; axis < ndim; ++axis) {
    if (std::ranges::count(given.span(), axis) == 1) axes.push_back(axis);
  }
  if (axes.size() == given.size()) return axes;
  raise(ErrorClass::kValue,
        {"axes", describe(object), "distinct, from 0 to " + std::to_string(ndim - 1),
         "name every reduced dimension once"});
}

py::object from_field(const LayoutRequest& field) {
  return pack(from_dims(field.dims), from_integers(field.shape.span()), from_halo(field.halo),
              from_integers(field.aligned_index.span()), from_integers(field.layout.span()),
              py::int_(field.alignment_bytes));
}

py::object join_fields(py::handle fields, py::handle others) {
  std::vector<LayoutRequest> layouts;
  for (PyObject* const field : entries_of(fields.ptr(), 0)) {
    layouts.push_back(to_field(field));
  }
  std::vector<NamedShape> shapes;
  for (PyObject* const other : entries_of(others.ptr(), 0)) {
    const std::span<PyObject* const> entries = entries_of(other, 2);
    shapes.push_back(to_named_shape(entries[0], entries[1]));
  }
  return from_field(value_of(join(layouts, shapes)));
}

py::object reduce_field(py::handle object, py::handle axes, py::handle keep) {
  const LayoutRequest field = to_field(object.ptr());
  return from_field(reduced_layout(field, to_reduced_axes(axes.ptr(), field.dims.size()),
                                   to_flag(keep.ptr(), "keep")));
}

py::object align_array(py::handle dims, py::handle shape, py::handle target) {
  const NamedShape array = to_named_shape(dims.ptr(), shape.ptr());
  const auto target_ndim = static_cast<int>(entries_of(target.ptr(), 0).size());
  const IndexMap map = value_of(named_map(array, to_dims(target.ptr(), target_ndim)));
  Axes axes;
  Axes inserted;
  for (int position = 0; position < map.ndim(); ++position) {
    const ViewAxis& axis = map.axis(position);
    axis.has_source() ? axes.push_back(axis.source) : inserted.push_back(position);
  }
  return pack(from_integers(axes.span()), from_integers(inserted.span()));
}

}  // namespace

void add_named_functions(PyObject* module) {
  auto core = py::reinterpret_borrow<py::module_>(module);
  core.def("_join", join_fields).def("_reduce", reduce_field).def("_align", align_array);
}

}  // namespace gridbuf::python
