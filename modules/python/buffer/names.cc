// By pybind11: presets, and the names and origin that arrays declare.

module;

#include <pybind11/pybind11.h>

#include <algorithm>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "modules/python/support/docstrings.h"

module gridbuf.python;

namespace gridbuf::python {
namespace {

PresetOrder to_order(PyObject* layout) {
  constexpr char kAdvice[] = "pass the ranks of I, J and K such as (2, 1, 0), or \"C\" or \"F\"";
  if (layout == Py_None) return PresetOrder::by_name(0, 1, 2);
  if (PyUnicode_Check(layout) != 0) {
    if (utf8(layout) == "C") return PresetOrder::row_major();
    if (utf8(layout) == "F") return PresetOrder::column_major();
    raise(ErrorClass::kValue,
          Problem{"layout", describe(layout), "three ranks, \"C\" or \"F\"", kAdvice});
  }
  const Extents ranks = to_integers(layout, "layout");
  const auto is_axis = [](std::int64_t rank) { return rank >= 0 && rank < kSpatialAxes; };
  if (ranks.size() != kSpatialAxes || !std::all_of(ranks.begin(), ranks.end(), is_axis)) {
    raise(ErrorClass::kValue,
          Problem{"layout", describe(layout), "a permutation of (0, 1, 2)", kAdvice});
  }
  return PresetOrder::by_name(static_cast<int>(ranks[0]), static_cast<int>(ranks[1]),
                              static_cast<int>(ranks[2]));
}

void register_preset_by_name(py::handle name, py::handle device, py::handle alignment_size,
                             py::handle layout) {
  if (PyUnicode_Check(name.ptr()) == 0) {
    raise(ErrorClass::kType, Problem{"name", describe(name.ptr()), "a str",
                                     "pass the name that backend=... accepts from then on"});
  }
  Preset preset{.device = *wants_gpu(device.ptr()) ? DeviceType::kCuda : DeviceType::kHost,
                .order = to_order(layout.ptr())};
  if (!alignment_size.is_none()) {
    preset.alignment_bytes = to_integer(alignment_size.ptr(), "alignment_size");
    check_alignment_size(preset.alignment_bytes);
  }
  check(register_preset(utf8(name.ptr()), preset));
}

py::object layout_of_preset(const Preset& preset) {
  if (preset.order.kind == PresetOrder::Kind::kRowMajor) return make_text("C");
  if (preset.order.kind == PresetOrder::Kind::kColumnMajor) return make_text("F");
  return from_integers(std::span<const int>(preset.order.base_ranks));
}

py::dict presets() {
  py::dict found;
  for (const std::string& name : preset_names()) {
    const Preset preset = value_of(find_preset(name));
    py::dict entry;
    entry["device"] = preset.device == DeviceType::kCuda ? make_text("gpu") : share(Py_None);
    entry["alignment_size"] = preset.alignment_bytes;
    entry["layout"] = layout_of_preset(preset);
    found[py::str(name)] = entry;
  }
  return found;
}

AttributeName ndim_name("ndim");
AttributeName shape_name("shape");

/// The number of dimensions: of the object if it says so, else of its shape, else of its memory.
int ndim_of(PyObject* object) {
  const py::object ndim = optional_attribute(object, ndim_name);
  if (!ndim) {
    const py::object shape = optional_attribute(object, shape_name);
    return shape ? to_integers(shape.ptr(), "shape").size() : source_of(object).like.shape.size();
  }
  const std::int64_t value = to_integer(ndim.ptr(), "ndim");
  if (value < 0 || value > kMaxNdim) {
    raise(ErrorClass::kValue,
          Problem{"ndim", std::to_string(value), "from 0 to " + std::to_string(kMaxNdim),
                  "pass an array with fewer dimensions"});
  }
  return static_cast<int>(value);
}

py::object get_dims(py::handle obj, py::handle annotation) {
  PyObject* const object = obj.ptr();
  const int ndim = ndim_of(object);
  const std::optional<Dims> declared = declared_dims(object, ndim);
  if (declared) return from_dims(*declared);
  if (is_ndarray(object)) {  // A plain array of ours: its names are those of its buffer.
    const std::optional<Dims> behind = dims_behind(object);
    if (behind) return from_dims(*behind);
  }
  if (annotation.is_none()) return share(Py_None);
  return from_dims(to_dims(annotation.ptr(), ndim));
}

/// _dim(dim, kind): the name and the kind of a dimension; `kind` None: as declared.
py::tuple name_and_kind(py::handle dim, py::handle kind) {
  const py::tuple one = py::make_tuple(dim);
  Dim found = to_dims(one.ptr(), 1)[0];
  if (!kind.is_none()) {
    found = value_of(make_dim(to_string(found), to_dim_kind(kind.ptr())));
  }
  return py::make_tuple(make_text(to_string(found)), make_text(to_string(found.kind())));
}

void declare_dims(const py::kwargs& kinds) {
  std::vector<Dim> dims;
  for (const auto& [name, kind] : kinds) {
    const py::tuple one = py::make_tuple(name);
    const Dim dim = to_dims(one.ptr(), 1)[0];
    dims.push_back(value_of(make_dim(to_string(dim), to_dim_kind(kind.ptr()))));
  }
  check(gridbuf::declare_dims(dims));
}

}  // namespace

Extents in_annotation_order(const Dims& dims, const Extents& entries) {
  Extents ordered;
  // A rank per name in the order of Dim (I < J < K < 0 < 1 < ...), read the other way round.
  LayoutMap order;
  for (const Dim dim : dims) {
    int position = 0;
    for (const Dim other : dims) position += other < dim ? 1 : 0;
    order.push_back(position);
  }
  for (const int axis : axes_by_rank(order)) ordered.push_back(entries[axis]);
  return ordered;
}

Extents origin_of(const Array& array) {
  return in_annotation_order(array.layout().dims(), array.layout().aligned_index());
}

void add_name_functions(PyObject* module) {
  auto core = py::reinterpret_borrow<py::module_>(module);
  py::options options;
  options.disable_function_signatures();
  core.def("register_preset", register_preset_by_name, py::arg("name"), py::kw_only(),
           py::arg("device") = py::none(), py::arg("alignment_size") = 1,
           py::arg("layout") = py::none(), doc("register_preset"))
      .def("presets", presets, doc("presets"))
      .def("get_dims", get_dims, py::arg("obj"), py::arg("annotation") = py::none(),
           doc("get_dims"))
      .def("_dim", name_and_kind, py::arg("dim"), py::arg("kind"))
      .def("declare_dims", declare_dims, doc("declare_dims"));
}

}  // namespace gridbuf::python
