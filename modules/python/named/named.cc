module;

#include <Python.h>

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

module gridbuf.python.named;

import gridbuf.base;
import gridbuf.layout.view;
import gridbuf.layout;
import gridbuf.python.arguments;
import gridbuf.python.object;

namespace gridbuf::python {
namespace {

// ---- From Python. ----

[[noreturn]] void raise_kind(std::string_view name, PyObject* found, std::string_view bound) {
  raise(ErrorClass::kType,
        Problem{name, describe(found), bound, "pass what a storage's _parameters begin with"});
}

void expect_arguments(const char* function, Py_ssize_t count, Py_ssize_t expected) {
  if (count == expected) return;
  raise(ErrorClass::kType, std::string(function) + "() takes " + std::to_string(expected) +
                               " arguments, but " + std::to_string(count) +
                               " were given; it is for gridbuf's own array functions");
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

Ref from_halo(const Halo& halo) {
  Ref tuple = Ref::steal(PyTuple_New(halo.size()));
  for (int axis = 0; axis < halo.size(); ++axis) {
    PyObject* const pair = Py_BuildValue("(LL)", static_cast<long long>(halo[axis].lower),
                                         static_cast<long long>(halo[axis].upper));
    PyTuple_SET_ITEM(tuple.get(), axis, Ref::steal(pair).release());
  }
  return tuple;
}

Ref from_field(const LayoutRequest& field) {
  const Ref dims = from_dims(field.dims);
  const Ref shape = from_integers(field.shape.span());
  const Ref halo = from_halo(field.halo);
  const Ref aligned_index = from_integers(field.aligned_index.span());
  const Ref layout = from_integers(field.layout.span());
  return Ref::steal(Py_BuildValue("(OOOOOL)", dims.get(), shape.get(), halo.get(),
                                  aligned_index.get(), layout.get(),
                                  static_cast<long long>(field.alignment_bytes)));
}

// ---- The functions. ----

PyObject* join_function(PyObject*, PyObject* const* arguments, Py_ssize_t count) {
  return guarded([&] {
    expect_arguments("_join", count, 2);
    std::vector<LayoutRequest> fields;
    for (PyObject* const field : entries_of(arguments[0], 0, "fields")) {
      fields.push_back(to_field(field));
    }
    std::vector<NamedShape> others;
    for (PyObject* const other : entries_of(arguments[1], 0, "others")) {
      const std::span<PyObject* const> entries = entries_of(other, 2, "an array");
      others.push_back(to_named_shape(entries[0], entries[1]));
    }
    return from_field(value_of(join(fields, others)));
  });
}

PyObject* reduce_function(PyObject*, PyObject* const* arguments, Py_ssize_t count) {
  return guarded([&] {
    expect_arguments("_reduce", count, 3);
    const LayoutRequest field = to_field(arguments[0]);
    const Axes axes = to_reduced_axes(arguments[1], field.dims.size());
    return from_field(reduced_layout(field, axes, to_flag(arguments[2], "keep")));
  });
}

PyObject* align_function(PyObject*, PyObject* const* arguments, Py_ssize_t count) {
  return guarded([&] {
    expect_arguments("_align", count, 3);
    const NamedShape array = to_named_shape(arguments[0], arguments[1]);
    const auto target_ndim = static_cast<int>(entries_of(arguments[2], 0, "target").size());
    const IndexMap map = value_of(named_map(array, to_dims(arguments[2], target_ndim)));
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
    const Ref axes_tuple = from_integers(axes.span());
    const Ref inserted_tuple = from_integers(inserted.span());
    return Ref::steal(PyTuple_Pack(2, axes_tuple.get(), inserted_tuple.get()));
  });
}

PyMethodDef functions[] = {
    {"_join", reinterpret_cast<PyCFunction>(reinterpret_cast<void*>(join_function)), METH_FASTCALL,
     "_join(fields, others, /)\n--\n\nWhat an operation on named fields gives."},
    {"_reduce", reinterpret_cast<PyCFunction>(reinterpret_cast<void*>(reduce_function)),
     METH_FASTCALL, "_reduce(field, axes, keep, /)\n--\n\nWhat is left of a field."},
    {"_align", reinterpret_cast<PyCFunction>(reinterpret_cast<void*>(align_function)),
     METH_FASTCALL, "_align(dims, shape, target, /)\n--\n\nHow to see an array in target's order."},
    {nullptr, nullptr, 0, nullptr},
};

}  // namespace

void add_named_functions(PyObject* module) { check(PyModule_AddFunctions(module, functions)); }

}  // namespace gridbuf::python
