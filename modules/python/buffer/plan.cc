module;

#include <pybind11/pybind11.h>

#include <algorithm>
#include <cstdint>
#include <functional>
#include <limits>
#include <span>
#include <string>

#include "modules/python/support/docstrings.h"

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

py::object plan(const py::args& arguments, const py::kwargs& keywords) {
  static constexpr auto kNames = joined_names({"shape", "dtype"}, kKeywordNames);
  static constexpr Signature kSignature{"plan", kNames, 2};
  PyObject* values[kNames.size()] = {};
  sort_arguments(kSignature, arguments, keywords, values, unknown_keyword);
  if (values[0] == nullptr) raise_missing(kSignature, 0);
  return make_plan_object(
      resolve(values[0], values[1], to_keywords(std::span(values).subspan(2))).layout);
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
  core.def("plan", plan, doc("plan"));
}

py::object make_plan_object(const Layout& layout) { return py::cast(layout); }

py::object pickled_parameters(const Layout& layout) {
  using namespace pybind11::literals;
  return py::dict("layout"_a = from_integers(layout.layout_map().span()),
                  "alignment_size"_a = layout.alignment_bytes(),
                  "aligned_index"_a = from_integers(layout.aligned_index().span()),
                  "dims"_a = from_dims(layout.dims()));
}

}  // namespace gridbuf::python
