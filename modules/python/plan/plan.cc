module;

#include <Python.h>
#include <pybind11/operators.h>
#include <pybind11/pybind11.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <utility>

#include "absl/status/statusor.h"

module gridbuf.python.plan;

import gridbuf.error;
import gridbuf.layout;
import gridbuf.layout.draw;
import gridbuf.python.arguments;
import gridbuf.python.object;

namespace gridbuf::python {
namespace {

namespace py = pybind11;

/// What the Python object holds.
struct NamedPlan {
  LayoutPlan plan;
  Dims dims;

  friend bool operator==(const NamedPlan&, const NamedPlan&) = default;
};

/// Runs `body` for pybind11, which wants its own exception for one that is already set.
template <class Body>
py::object bound(Body&& body) {
  try {
    return py::reinterpret_steal<py::object>(body().release());
  } catch (const PythonError&) {
    throw py::error_already_set();
  }
}

template <class Read>
auto tuple_of(Read read) {
  return [read](const NamedPlan& self) {
    return bound([&] { return from_integers(std::invoke(read, self.plan).span()); });
  };
}

std::string text_of(const NamedPlan& self) {
  // The C++ text closes with a parenthesis; the names go before it.
  std::string text = "gridbuf." + to_string(self.plan);
  text.pop_back();
  return text + ", dims " + to_string(self.dims) + ")";
}

std::string drawing_of(const NamedPlan& self, int max_columns, int max_rows) {
  if (max_columns < 1 || max_rows < 1) {
    throw py::value_error(problem_text(
        {"max_columns, max_rows", std::to_string(max_columns) + ", " + std::to_string(max_rows),
         "1 or more", "leave them out for 24 columns and 32 rows"}));
  }
  return draw(self.plan,
              {.dims = self.dims, .max_columns = max_columns, .max_rows = max_rows});
}

std::string differences(const NamedPlan& wanted, const NamedPlan& found) {
  return difference(wanted.plan, found.plan);
}

std::size_t hash_of(const NamedPlan& self) {
  return std::hash<std::string>()(text_of(self));  // The text holds all that a plan is made from.
}

py::tuple state_of(const NamedPlan& self) {
  const LayoutPlan& plan = self.plan;
  return py::make_tuple(tuple_of(&LayoutPlan::shape)(self), plan.itemsize_bytes(),
                        tuple_of(&LayoutPlan::layout)(self), plan.alignment_bytes(),
                        tuple_of(&LayoutPlan::aligned_index)(self),
                        bound([&] { return from_dims(self.dims); }));
}

NamedPlan restore(const py::tuple& state) {
  if (state.size() != 6) {
    throw py::value_error("a pickled LayoutPlan has 6 entries, but this one has " +
                          std::to_string(state.size()) + "; pickle the plan again");
  }
  try {
    const Extents shape = to_integers(state[0].ptr(), "shape");
    const Dims dims = to_dims(state[5].ptr(), shape.size());
    const PlanRequest request{.shape = shape,
                              .itemsize_bytes = to_integer(state[1].ptr(), "itemsize"),
                              .layout = to_layout(state[2].ptr(), dims),
                              .alignment_bytes = to_integer(state[3].ptr(), "alignment_size"),
                              .aligned_index = to_integers(state[4].ptr(), "aligned_index")};
    return {value_of(make_plan(request)), dims};
  } catch (const PythonError&) {
    throw py::error_already_set();
  }
}

void add_members(py::class_<NamedPlan>& type) {
  type.def_property_readonly("shape", tuple_of(&LayoutPlan::shape), "Extents, in elements.")
      .def_property_readonly("ndim", [](const NamedPlan& self) { return self.plan.ndim(); },
                             "The number of dimensions.")
      .def_property_readonly("dims",
                             [](const NamedPlan& self) { return bound([&] { return from_dims(self.dims); }); },
                             "Names of the dimensions.")
      .def_property_readonly("itemsize",
                             [](const NamedPlan& self) { return self.plan.itemsize_bytes(); },
                             "Bytes of one element.")
      .def_property_readonly("layout", tuple_of(&LayoutPlan::layout),
                             "The layout map: ranks, 0 for the largest stride.")
      .def_property_readonly("strides", tuple_of(&LayoutPlan::strides_bytes),
                             "Bytes from an element to the next one, per dimension.")
      .def_property_readonly("padded_shape", tuple_of(&LayoutPlan::padded_shape),
                             "The shape with the contiguous extent rounded up.")
      .def_property_readonly("alignment_size",
                             [](const NamedPlan& self) { return self.plan.alignment_bytes(); },
                             "Bytes; 1 means no constraint.")
      .def_property_readonly("aligned_index", tuple_of(&LayoutPlan::aligned_index),
                             "The index whose element is aligned.")
      .def_property_readonly("aligned_offset",
                             [](const NamedPlan& self) { return self.plan.aligned_offset_bytes(); },
                             "Bytes from element (0, ..., 0) to the one at aligned_index.")
      .def_property_readonly("size", [](const NamedPlan& self) { return self.plan.element_count(); },
                             "The number of elements, without padding.")
      .def_property_readonly("nbytes", [](const NamedPlan& self) { return self.plan.nbytes(); },
                             "Bytes of all elements, without padding.")
      .def_property_readonly("total_bytes",
                             [](const NamedPlan& self) { return self.plan.total_bytes(); },
                             "Bytes from element (0, ..., 0) to the end, padding included.");
}

}  // namespace

void add_plan_type(PyObject* module) {
  try {
    py::class_<NamedPlan> type(
        py::reinterpret_borrow<py::module_>(module), "LayoutPlan", py::is_final(),
        "Where the elements of an array lie, without any memory: a value to print, compare and draw.\n\n"
        "Made by gridbuf.plan(...) and Buffer.plan.");
    add_members(type);
    type.def("offset_rule", [](const NamedPlan& self) { return offset_rule(self.plan); },
             "The offset of an element as a formula of its index, in bytes.")
        .def("draw", drawing_of, py::kw_only(), py::arg("max_columns") = 24,
             py::arg("max_rows") = 32,
             "Memory as text: a line per row, a mark per element (o domain, A aligned, . padding).")
        .def("difference", differences, py::arg("found"), py::pos_only(),
             "What differs from another plan, a line per property; '' if nothing does.")
        .def(py::self == py::self)
        .def("__hash__", hash_of)
        .def("__repr__", text_of)
        .def(py::pickle(&state_of, &restore));
    type.attr("__module__") = "gridbuf";
  } catch (py::error_already_set& error) {
    error.restore();
    throw PythonError();
  }
}

Ref make_plan_object(const LayoutPlan& plan, const Dims& dims) {
  try {
    return Ref::steal(py::cast(NamedPlan{plan, dims}).release().ptr());
  } catch (py::error_already_set& error) {
    error.restore();
    throw PythonError();
  }
}

}  // namespace gridbuf::python
