// Broadcasting by dimension names, for the package's Python part.
//
// Purpose. The array functions of storages are written in Python, as the work that they hand out is
// NumPy's or CuPy's. What they compute about dimensions is gridbuf.layout.view, and nothing of it
// is repeated in Python: this module is the way there.
//
// Key choice. A field is the plain tuple that a storage's `_parameters` begins with: (dims, shape,
// halo, aligned_index, layout, alignment_size). Plain tuples can be compared and hashed, so that
// the Python side remembers the answer for operands it has seen before; an expression in a time
// loop asks once. What comes in is checked like any argument, because nothing stops a caller from
// passing something else.

#include <pybind11/pybind11.h>

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "modules/python/src/parts.h"

import gridbuf.base;
import gridbuf.layout;
import gridbuf.layout.view;
import gridbuf.python.support;

namespace gridbuf::python {
namespace {

// ---- From Python. ----

[[noreturn]] void raise_kind(std::string_view name, PyObject* found, std::string_view bound) {
  raise(ErrorClass::kType,
        Problem{name, describe(found), bound, "pass what a storage's _parameters begin with"});
}

/// The entries of a tuple of at least `least`; borrowed, as nobody can change a tuple.
std::span<PyObject* const> entries_of(PyObject* tuple, Py_ssize_t least, std::string_view name) {
  if (PyTuple_Check(tuple) == 0 || PyTuple_GET_SIZE(tuple) < least) {
    raise_kind(name, tuple, "a tuple of at least " + std::to_string(least) + " entries");
  }
  return {&PyTuple_GET_ITEM(tuple, 0), static_cast<std::size_t>(PyTuple_GET_SIZE(tuple))};
}

Halo to_halo(PyObject* object, const Extents& shape) {
  Halo halo;
  for (PyObject* const item : entries_of(object, 0, "halo")) {
    const Extents pair = to_integers(item, "halo");
    if (pair.size() != 2) raise_kind("an entry of halo", item, "a pair (lower, upper)");
    if (halo.size() == kMaxNdim) break;  // Too many; the check below says so.
    halo.push_back({pair[0], pair[1]});
  }
  check(validate_halo(halo, shape));
  return halo;
}

NamedShape to_named_shape(PyObject* dims, PyObject* shape) {
  NamedShape array;
  array.shape = to_shape(shape, "elements");
  array.dims = to_dims(dims, array.shape.size());
  return array;
}

/// Checked by making the plan of such an array: what has one has valid parameters.
LayoutRequest to_field(PyObject* object) {
  const std::span<PyObject* const> entries = entries_of(object, 6, "a field");
  const NamedShape array = to_named_shape(entries[0], entries[1]);
  // An item size of 0: the shape of a view may be too large for memory of its own.
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
  std::uint64_t seen = 0;
  for (const std::int64_t axis : to_integers(object, "axes")) {
    if (axis < 0 || axis >= ndim || (seen >> axis & 1) != 0) {
      raise(ErrorClass::kValue,
            Problem{"axes", describe(object), "distinct, from 0 to " + std::to_string(ndim - 1),
                    "name every reduced dimension once"});
    }
    seen |= std::uint64_t{1} << axis;
  }
  Axes axes;
  for (int axis = 0; axis < ndim; ++axis) {
    if ((seen >> axis & 1) != 0) axes.push_back(axis);
  }
  return axes;
}

// ---- To Python. ----

py::object from_halo(const Halo& halo) {
  py::tuple pairs(halo.size());
  for (int axis = 0; axis < halo.size(); ++axis) {
    pairs[axis] = pack(py::int_(halo[axis].lower), py::int_(halo[axis].upper));
  }
  return pairs;
}

py::object from_field(const LayoutRequest& field) {
  return pack(from_dims(field.dims), from_integers(field.shape.span()), from_halo(field.halo),
              from_integers(field.aligned_index.span()), from_integers(field.layout.span()),
              py::int_(field.alignment_bytes));
}

// ---- The functions. ----

py::object join_fields(py::handle fields, py::handle others) {
  std::vector<LayoutRequest> layouts;
  for (PyObject* const field : entries_of(fields.ptr(), 0, "fields")) {
    layouts.push_back(to_field(field));
  }
  std::vector<NamedShape> shapes;
  for (PyObject* const other : entries_of(others.ptr(), 0, "others")) {
    const std::span<PyObject* const> entries = entries_of(other, 2, "an array");
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
  const auto target_ndim = static_cast<int>(entries_of(target.ptr(), 0, "target").size());
  const IndexMap map = value_of(named_map(array, to_dims(target.ptr(), target_ndim)));
  Axes axes;
  Axes inserted;
  for (int position = 0; position < map.ndim(); ++position) {
    const ViewAxis& axis = map.axis(position);
    if (axis.has_source()) {
      axes.push_back(axis.source);
    } else {
      inserted.push_back(position);
    }
  }
  return pack(from_integers(axes.span()), from_integers(inserted.span()));
}

}  // namespace

void add_named_functions(PyObject* module) {
  auto core = py::reinterpret_borrow<py::module_>(module);
  core.def("_join", join_fields, "What an operation on named fields gives.")
      .def("_reduce", reduce_field, "What is left of a field.")
      .def("_align", align_array, "How to see an array in target's order.");
}

}  // namespace gridbuf::python
