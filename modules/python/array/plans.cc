// `gridbuf.LayoutPlan`; presets, and the names and origin that arrays declare.

module;

#include <pybind11/pybind11.h>

#include <algorithm>
#include <cstdint>
#include <functional>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "modules/python/arguments/docstrings.h"

module gridbuf.python;

namespace gridbuf::python {
namespace {

std::string text_of(const Layout& layout) {
  return "gridbuf.LayoutPlan(" + to_string(layout) + ")";
}

template <auto read>
auto number(const Layout& layout) {
  return (layout.*read)();
}
template <auto read>
py::object numbers(const Layout& layout) {
  return from_integers((layout.*read)().span());
}

py::object reduce(const Layout& layout) {
  const py::object arguments = py::make_tuple(from_integers(layout.shape().span()),
                                              layout.itemsize_bytes(), pickled_parameters(layout));
  return pack(py::module_::import("gridbuf._pickles").attr("restore_plan"), arguments);
}

/// A number of rows or columns; values beyond int are larger than any drawing.
int to_count(py::handle object, const char* name) {
  const std::int64_t count = to_integer(object.ptr(), name);
  if (count < 1) {
    raise(ErrorClass::kValue, Problem{name, std::to_string(count), "1 or more", "leave it out"});
  }
  return static_cast<int>(std::min<std::int64_t>(count, std::numeric_limits<int>::max()));
}

std::string draw_plan(const Layout& layout, py::handle max_columns, py::handle max_rows) {
  return draw(layout, {.dims = layout.dims(),
                       .max_columns = to_count(max_columns, "max_columns"),
                       .max_rows = to_count(max_rows, "max_rows")});
}

std::string difference_from(const Layout& layout, py::handle found) {
  if (!py::isinstance<Layout>(found)) {
    raise(ErrorClass::kType, Problem{"found", describe(found.ptr()), "a gridbuf.LayoutPlan",
                                     "pass Buffer.plan or the result of gridbuf.plan"});
  }
  return difference(layout, py::cast<const Layout&>(found));
}

py::object refuse_call(PyObject*, PyObject*) {
  raise(ErrorClass::kType,
        "gridbuf.LayoutPlan cannot be called; use gridbuf.plan(shape, dtype, ...)");
}

}  // namespace

void add_plan_type(PyObject* module) {
  auto core = py::reinterpret_borrow<py::module_>(module);
  py::options options;
  options.disable_function_signatures();
  py::class_<Layout> type(core, "LayoutPlan", py::module_local(), py::is_final(),
                          doc("LayoutPlan"));
  type.def_property_readonly("shape", numbers<&Layout::shape>, doc("LayoutPlan.shape"))
      .def_property_readonly("ndim", number<&Layout::ndim>, doc("LayoutPlan.ndim"))
      .def_property_readonly(
          "dims", [](const Layout& layout) { return from_dims(layout.dims()); },
          doc("LayoutPlan.dims"))
      .def_property_readonly("itemsize", number<&Layout::itemsize_bytes>,
                             doc("LayoutPlan.itemsize"))
      .def_property_readonly("layout", numbers<&Layout::layout_map>, doc("LayoutPlan.layout"))
      .def_property_readonly("strides", numbers<&Layout::strides_bytes>, doc("LayoutPlan.strides"))
      .def_property_readonly("padded_shape", numbers<&Layout::padded_shape>,
                             doc("LayoutPlan.padded_shape"))
      .def_property_readonly("alignment_size", number<&Layout::alignment_bytes>,
                             doc("LayoutPlan.alignment_size"))
      .def_property_readonly("aligned_index", numbers<&Layout::aligned_index>,
                             doc("LayoutPlan.aligned_index"))
      .def_property_readonly("aligned_offset", number<&Layout::aligned_offset_bytes>,
                             doc("LayoutPlan.aligned_offset"))
      .def_property_readonly("size", number<&Layout::element_count>, doc("LayoutPlan.size"))
      .def_property_readonly("nbytes", number<&Layout::nbytes>, doc("LayoutPlan.nbytes"))
      .def_property_readonly("total_bytes", number<&Layout::total_bytes>,
                             doc("LayoutPlan.total_bytes"))
      .def(
          "offset_rule", [](const Layout& layout) { return offset_rule(layout); },
          doc("LayoutPlan.offset_rule"))
      .def("draw", draw_plan, py::kw_only(), py::arg("max_columns") = DrawOptions().max_columns,
           py::arg("max_rows") = DrawOptions().max_rows, doc("LayoutPlan.draw"))
      .def("difference", difference_from, py::arg("found"), py::pos_only(),
           doc("LayoutPlan.difference"))
      .def("__repr__", text_of)
      .def("__eq__",
           [](const Layout& layout, py::handle other) {
             if (!py::isinstance<Layout>(other)) return share(Py_NotImplemented);
             return share(layout == py::cast<const Layout&>(other) ? Py_True : Py_False);
           })
      // The text holds all that a plan is made from.
      .def("__hash__",
           [](const Layout& layout) { return std::hash<std::string>()(text_of(layout)); })
      .def("__reduce__", reduce, doc("LayoutPlan.__reduce__"));
  close_class<refuse_call>(type, "gridbuf");
}

py::object make_plan_object(const Layout& layout) { return py::cast(layout); }

py::object pickled_parameters(const Layout& layout) {
  using namespace pybind11::literals;
  return py::dict("layout"_a = from_integers(layout.layout_map().span()),
                  "alignment_size"_a = layout.alignment_bytes(),
                  "aligned_index"_a = from_integers(layout.aligned_index().span()),
                  "dims"_a = from_dims(layout.dims()));
}

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
  Preset preset{.on_device = *wants_gpu(device.ptr()), .order = to_order(layout.ptr())};
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
    entry["device"] = preset.on_device ? make_text("gpu") : share(Py_None);
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

Dim to_dim(py::handle object) {
  const py::tuple one = py::make_tuple(object);
  return to_dims(one.ptr(), 1)[0];
}

/// _dim(dim, kind): the name and the kind of a dimension; `kind` None: as declared.
py::tuple name_and_kind(py::handle dim, py::handle kind) {
  Dim found = to_dim(dim);
  if (!kind.is_none()) {
    found = value_of(make_dim(to_string(found), to_dim_kind(kind.ptr())));
  }
  return py::make_tuple(make_text(to_string(found)), make_text(to_string(found.kind())));
}

void declare_dims(const py::kwargs& kinds) {
  std::vector<Dim> dims;
  for (const auto& [name, kind] : kinds) {
    const Dim dim = to_dim(name);
    if (PyUnicode_CheckExact(kind.ptr()) == 0 && PyUnicode_Check(kind.ptr()) != 0) {
      check(declare_half(dim, to_dim(kind)));  // a Dim, not the name of a kind
    } else {
      dims.push_back(value_of(make_dim(to_string(dim), to_dim_kind(kind.ptr()))));
    }
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
      .def("_half",
           [](py::handle dim) { return from_dims(Dims(1, value_of(half_of(to_dim(dim))))); })
      .def("declare_dims", declare_dims, doc("declare_dims"));
}

}  // namespace gridbuf::python
