// The parameters of storages as one value, and broadcasting by dimension names: gridbuf.layout.view
// for the array functions of storages, which are written in Python.
//
// Key decision: equal parameters with one dtype object are one object of Python. The array
// functions keep what they found out about operands by these objects, and an expression in a time
// loop finds it by their addresses.

module;

#include <pybind11/pybind11.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "modules/python/arguments/docstrings.h"

module gridbuf.python;

namespace gridbuf::python::storages {
namespace {

/// All of a storage but its elements. `source.like` has an entry per dimension in every list.
struct Parameters {
  StorageSource source;

  friend bool operator==(const Parameters& a, const Parameters& b) {
    return a.source.memory == b.source.memory && a.source.managed == b.source.managed &&
           a.source.on_device == b.source.on_device &&
           a.source.dtype->numpy.is(b.source.dtype->numpy) && a.source.like == b.source.like &&
           std::ranges::equal(a.source.like.dims.span(), b.source.like.dims.span(),
                              [](Dim one, Dim other) { return one.is_identical(other); });
  }
};

struct Hash {
  std::size_t operator()(const Parameters& parameters) const {
    const LayoutRequest& like = parameters.source.like;
    std::size_t hash = std::hash<const void*>()(parameters.source.dtype->numpy.ptr());
    const auto add = [&hash](std::int64_t value) {
      hash = hash * 0x9E3779B97F4A7C15U + static_cast<std::size_t>(value);
    };
    for (const std::int64_t extent : like.shape) add(extent);
    for (const Dim dim : like.dims) add(dim.code());
    for (const int rank : like.layout) add(rank);
    for (const std::int64_t index : like.aligned_index) add(index);
    add(like.alignment_bytes);
    return hash;
  }
};

/// The object of these parameters.
py::object interned(Parameters parameters) {
  // Bounded, because each keeps its dtype. A new object only means that plans are made again.
  static auto& known = *new Cache<Parameters, py::object, Hash>(1024);
  if (py::object found = known.find(parameters)) return found;
  py::object made = py::cast(parameters);
  return known.add(std::move(parameters), std::move(made));
}

py::object dims_of(const Parameters& parameters) { return from_dims(parameters.source.like.dims); }
py::object extents_of(const Parameters& parameters) {
  return from_integers(parameters.source.like.shape.span());
}

/// The axes of dimensions that have a property, ascending.
template <bool (Dim::*has_property)() const noexcept>
py::object axes_with(const Parameters& parameters) {
  const Dims& dims = parameters.source.like.dims;
  Extents axes;
  for (int axis = 0; axis < dims.size(); ++axis) {
    if ((dims[axis].*has_property)()) axes.push_back(axis);
  }
  return from_integers(axes.span());
}

/// A new storage with undefined elements.
py::object empty(const Parameters& parameters, py::handle dtype) {
  return allocate_storage(resolve_storage_like(parameters.source, {.dtype = dtype.ptr()}),
                          Zeroed::kNothing);
}

/// The request for the device's side.
LayoutRequest like_on_device(const StorageSource& source) {
  LayoutRequest like = source.like;
  if (source.on_device) {
    like.layout = source.on_device->layout;
    like.alignment_bytes = source.on_device->alignment_bytes;
  }
  return like;
}

/// Parameters like those of `decider`, over what an operation makes of each side's layout.
template <class Make>
py::object made_of_sides(const Parameters& decider, bool has_two, const Make& make) {
  Parameters made{.source = decider.source};
  made.source.on_device.reset();
  made.source.like = make(Side::kHost);
  if (has_two && made.source.managed == StorageKind::kSoftwareManaged) {
    const LayoutRequest second = make(Side::kDevice);
    const SecondLayout found{second.layout, second.alignment_bytes};
    if (found != SecondLayout{made.source.like.layout, made.source.like.alignment_bytes}) {
      made.source.on_device = found;
    }
  }
  return interned(std::move(made));
}

NamedShape to_named_shape(py::handle dims, py::handle shape) {
  NamedShape array;
  array.shape = to_shape(shape.ptr(), "elements");
  array.dims = to_dims(dims.ptr(), array.shape.size());
  return array;
}

/// Of a storage, Parameters, or an object with dims and shape and, if they are known, `lower`.
NamedShape to_named_shape(py::handle array) {
  if (is_storage(array.ptr())) {
    const Storage& storage = storage_of(array.ptr());
    return {.dims = storage.dims(), .shape = storage.shape()};
  }
  if (py::isinstance<Parameters>(array)) {
    const LayoutRequest& like = py::cast<const Parameters&>(array).source.like;
    return {.dims = like.dims, .shape = like.shape};
  }
  NamedShape found = to_named_shape(array.attr("dims"), array.attr("shape"));
  static AttributeName name("lower");
  const py::object lower = optional_attribute(array.ptr(), name);
  if (lower && !lower.is_none()) found.dims = starting_at(lower.ptr(), found.dims);
  return found;
}

/// _common_points(array, target): the subscript of the array's points that the target has, along
/// dimensions whose start both know; None if these are all.
py::object common_points(py::handle array, py::handle target) {
  const IndexMap map = value_of(common_points_map(to_named_shape(array), to_named_shape(target)));
  if (map.is_identity()) return share(Py_None);
  return tuple_of(map.ndim(), [&map](Py_ssize_t axis) -> py::object {
    const std::int64_t first = map.start()[static_cast<int>(axis)];
    return py::slice(first, first + map.axis(static_cast<int>(axis)).extent, 1);
  });
}

/// The parameters of what an operation on `fields` makes; `others`, which have dims and a shape,
/// take part with their names and extents. Kind and dtype are those of `decider`. `order` is that
/// of the dimensions, if it is not None.
py::object join_fields(const Parameters& decider, const py::list& fields, const py::list& others,
                       py::handle order) {
  std::vector<LayoutRequest> layouts;
  std::vector<LayoutRequest> layouts_on_device;
  bool has_two = false;
  for (const py::handle field : fields) {
    if (!py::isinstance<Parameters>(field)) {
      raise(ErrorClass::kType, Problem{"a field", describe(field.ptr()),
                                       "the Parameters of a storage", "pass storage._parameters"});
    }
    const StorageSource& source = py::cast<const Parameters&>(field).source;
    layouts.push_back(source.like);
    layouts_on_device.push_back(like_on_device(source));
    has_two = has_two || source.on_device;
  }
  std::vector<NamedShape> shapes;
  for (const py::handle other : others) {
    shapes.push_back(to_named_shape(other));
  }
  const Dims names =
      order.is_none() ? Dims() : to_dims(order.ptr(), static_cast<int>(py::len(order)));
  return made_of_sides(decider, has_two, [&](Side side) {
    return value_of(join(side == Side::kHost ? layouts : layouts_on_device, shapes, names));
  });
}

Axes to_ascending_axes(PyObject* object, int ndim) {
  const Extents given = to_integers(object, "axes");
  Axes axes;
  for (int axis = 0; axis < ndim; ++axis) {
    if (std::ranges::count(given.span(), axis) == 1) axes.push_back(axis);
  }
  if (axes.size() == given.size()) return axes;
  raise(ErrorClass::kValue,
        Problem{"axes", describe(object), "distinct, from 0 to " + std::to_string(ndim - 1),
                "name every dimension once"});
}

py::object reduced(const Parameters& parameters, py::handle axes, py::handle keep) {
  const StorageSource& source = parameters.source;
  const Axes gone = to_ascending_axes(axes.ptr(), source.like.dims.size());
  const bool keeps = to_flag(keep.ptr(), "keep");
  return made_of_sides(parameters, source.on_device.has_value(), [&](Side side) {
    return reduced_layout(side == Side::kHost ? source.like : like_on_device(source), gone, keeps);
  });
}

/// These parameters with other extents. A dimension whose extent changes has no halo.
py::object resized(const Parameters& parameters, py::handle shape) {
  const Extents extents = to_shape(shape.ptr(), "elements");
  Parameters made = parameters;
  LayoutRequest& like = made.source.like;
  if (extents.size() != like.shape.size()) {
    raise(ErrorClass::kValue,
          Problem{"the number of extents", std::to_string(extents.size()),
                  std::to_string(like.shape.size()), "pass one for each dimension"});
  }
  for (int axis = 0; axis < extents.size(); ++axis) {
    if (extents[axis] == like.shape[axis]) continue;
    like.shape[axis] = extents[axis];
    like.halo[axis] = {};
    like.aligned_index[axis] = 0;
    like.dims[axis] = like.dims[axis].plain();
  }
  return interned(std::move(made));
}

/// These parameters with stretchable axes, some of them unnamed, as a pickle has them.
py::object stretchable(const Parameters& parameters, py::handle axes, py::handle unnamed) {
  const int ndim = parameters.source.like.dims.size();
  const Axes stretchable = to_ascending_axes(axes.ptr(), ndim);
  const Axes without_name = to_ascending_axes(unnamed.ptr(), ndim);
  Parameters made = parameters;
  LayoutRequest& like = made.source.like;
  for (const int axis : stretchable) {
    if (like.shape[axis] != 1) {
      raise(ErrorClass::kValue,
            Problem{"the extent of a stretchable axis", std::to_string(like.shape[axis]), "1",
                    "pickle the storage again"});
    }
    const bool has_name = std::ranges::count(without_name.span(), axis) == 0;
    like.dims[axis] = has_name ? like.dims[axis].stretchable() : like.dims[axis].unnamed();
  }
  return interned(std::move(made));
}

/// _align(dims, shape, target): the axes of a view in the order of `target`, and where axes of
/// extent 1 are to be inserted.
py::object align_array(py::handle dims, py::handle shape, py::handle target) {
  const NamedShape array = to_named_shape(dims, shape);
  const Py_ssize_t target_ndim = PySequence_Size(target.ptr());
  if (target_ndim < 0) throw PythonError();
  const IndexMap map =
      value_of(named_map(array, to_dims(target.ptr(), static_cast<int>(target_ndim))));
  Axes axes;
  Axes inserted;
  for (int position = 0; position < map.ndim(); ++position) {
    const ViewAxis& axis = map.axis(position);
    axis.has_source() ? axes.push_back(axis.source) : inserted.push_back(position);
  }
  return pack(from_integers(axes.span()), from_integers(inserted.span()));
}

py::object refuse_call(PyObject*, PyObject*) {
  raise(ErrorClass::kType, "Parameters cannot be called; a storage has them");
}

}  // namespace

py::object parameters_of(const StorageObject& object) {
  const Storage& storage = object.storage();
  Parameters parameters{.source = storage_source_of(object.self(), nullptr)};
  LayoutRequest& like = parameters.source.like;
  like.dtype_name = {};
  like.itemsize_bytes = 1;
  like.halo = storage.halo();
  return interned(std::move(parameters));
}

void add_parameters_type(PyObject* module) {
  auto core = py::reinterpret_borrow<py::module_>(module);
  py::options options;
  options.disable_function_signatures();
  py::class_<Parameters> type(core, "Parameters", py::module_local(), py::is_final(),
                              doc("Parameters"));
  type.def_property_readonly("dims", dims_of, doc("Parameters.dims"))
      .def_property_readonly("shape", extents_of, doc("Parameters.shape"))
      .def_property_readonly(
          "dtype", [](const Parameters& parameters) { return parameters.source.dtype->numpy; },
          doc("Parameters.dtype"))
      .def_property_readonly(
          "lower",
          [](const Parameters& parameters) { return starts_of(parameters.source.like.dims); },
          doc("Parameters.lower"))
      .def_property_readonly("stretchable", axes_with<&Dim::is_stretchable>,
                             doc("Parameters.stretchable"))
      .def_property_readonly("unnamed", axes_with<&Dim::is_unnamed>, doc("Parameters.unnamed"))
      .def("empty", empty, py::arg("dtype") = py::none(), doc("Parameters.empty"))
      .def("reduced", reduced, py::arg("axes"), py::arg("keep"), doc("Parameters.reduced"))
      .def("_resized", resized)
      .def("_stretchable", stretchable);
  close_class<refuse_call>(type, "gridbuf._core");
  core.def("_join", join_fields, py::arg("decider"), py::arg("fields"), py::arg("others"),
           py::arg("order") = py::none())
      .def("_align", align_array)
      .def("_common_points", common_points);
}

}  // namespace gridbuf::python::storages
