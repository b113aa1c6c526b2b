// What was declared of a stencil, and the arguments of a call sorted by it.

module;

#include <Python.h>
#include <structmember.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

module gridbuf.python.call;

import gridbuf.base;
import gridbuf.call;
import gridbuf.layout;
import gridbuf.python.support;
import gridbuf.storage;

namespace gridbuf::python::calls {
namespace {

struct CallerObject {
  PyObject ob_base;
  vectorcallfunc vectorcall;
  CallerSpec* spec;
};

PyTypeObject* caller_type = nullptr;  // Made once, kept for good.

[[noreturn]] void raise_declaration(std::string_view name, PyObject* found) {
  raise(ErrorClass::kType, Problem{name, describe(found), "as gridbuf.call declares it",
                                   "make stencils with gridbuf.stencil"});
}

// ---- Reading a declaration, which gridbuf.call made. ----

PyObject* entry(PyObject* tuple, Py_ssize_t position, std::string_view name) {
  if (PyTuple_Check(tuple) == 0 || PyTuple_GET_SIZE(tuple) <= position) {
    raise_declaration(name, tuple);
  }
  return PyTuple_GET_ITEM(tuple, position);
}

/// The entries of a tuple, which nobody can change.
std::span<PyObject* const> entries_of(PyObject* tuple, std::string_view name) {
  if (PyTuple_Check(tuple) == 0) raise_declaration(name, tuple);
  return {&PyTuple_GET_ITEM(tuple, 0), static_cast<std::size_t>(PyTuple_GET_SIZE(tuple))};
}

/// A count from 0 to `most`.
int to_count(PyObject* object, std::size_t most) {
  const std::int64_t count = to_integer(object, "a count");
  if (count < 0 || count > static_cast<std::int64_t>(most)) raise_declaration("a count", object);
  return static_cast<int>(count);
}

/// A layout map or None, an alignment.
MemoryRule to_memory_rule(PyObject* layout, PyObject* alignment, const Dims& dims) {
  MemoryRule rule;
  if (layout != Py_None) {
    rule.layout = to_layout(layout, dims);
    check(validate_layout_map(rule.layout, dims.size()));
  }
  rule.alignment_bytes = to_integer(alignment, "Alignment");
  if (rule.alignment_bytes < 1 || rule.alignment_bytes > kMaxAlignmentBytes) {
    raise(ErrorClass::kValue,
          Problem{"Alignment", std::to_string(rule.alignment_bytes),
                  "from 1 to " + std::to_string(kMaxAlignmentBytes) + " bytes", "count bytes"});
  }
  return rule;
}

/// None, or a pair of points for each dimension.
Halo to_reach(PyObject* pairs, const Dims& dims) {
  Halo reach;
  if (pairs == Py_None) return reach;
  const auto entries = entries_of(pairs, "reach");
  if (static_cast<int>(entries.size()) != dims.size()) raise_declaration("reach", pairs);
  for (PyObject* const entry : entries) {
    const Extents pair = to_integers(entry, "reach");
    if (pair.size() != 2 || pair[0] < 0 || pair[1] < 0) raise_declaration("reach", pairs);
    reach.push_back({pair[0], pair[1]});
  }
  return reach;
}

/// (name, parameter, dims, dtype, data extents, relied layout, relied alignment, preferred layout,
/// preferred alignment, is written, reach)
void add_field(PyObject* declared, CallerSpec& spec) {
  const auto at = [&](Py_ssize_t position) { return entry(declared, position, "a field"); };
  if (PyUnicode_Check(at(0)) == 0) raise_declaration("a field's name", at(0));
  FieldRule rule;
  rule.name = utf8(at(0));
  rule.dims = to_dims(at(2), static_cast<int>(entries_of(at(2), "a field's axes").size()));
  check(check_annotation_order(rule.dims));
  FieldSpec field{.name = share(at(0)),
                  .dtype = to_dtype(at(3)).record,
                  .parameter = to_count(at(1), spec.parameters.size()),
                  .is_written = to_flag(at(9), "is_written")};
  rule.dtype = field.dtype->type;
  rule.data_extents = to_integers(at(4), "data extents");
  if (rule.data_extents.size() > rule.dims.size()) raise_declaration("data extents", at(4));
  rule.relied_on = to_memory_rule(at(5), at(6), rule.dims);
  rule.preferred = to_memory_rule(at(7), at(8), rule.dims);
  rule.reach = to_reach(at(10), rule.dims);
  spec.rules.push_back(std::move(rule));
  spec.fields.push_back(std::move(field));
}

/// ((name, is required), ...), how many are positional-only, how many positional, takes more, takes
/// more keywords
void add_parameters(PyObject* declared, CallerSpec& spec) {
  for (PyObject* const parameter :
       entries_of(entry(declared, 0, "parameters"), "the list of parameters")) {
    py::object name = share(entry(parameter, 0, "a parameter"));
    if (PyUnicode_Check(name.ptr()) == 0) raise_declaration("a parameter's name", name.ptr());
    spec.parameters.push_back(std::move(name));
    spec.is_required.push_back(to_flag(entry(parameter, 1, "a parameter"), "required"));
  }
  spec.positional = to_count(entry(declared, 2, "parameters"), spec.parameters.size());
  spec.positional_only =
      to_count(entry(declared, 1, "parameters"), static_cast<std::size_t>(spec.positional));
  spec.takes_more = to_flag(entry(declared, 3, "parameters"), "takes_more");
  spec.takes_more_keywords = to_flag(entry(declared, 4, "parameters"), "takes_more_keywords");
}

/// (name, backend or "", side, passes origin, passes domain, writes are declared, copies)
void add_options(PyObject* declared, CallerSpec& spec) {
  const auto at = [&](Py_ssize_t position) { return entry(declared, position, "options"); };
  for (const Py_ssize_t text : {0, 1}) {
    if (PyUnicode_Check(at(text)) == 0) raise_declaration("a name", at(text));
  }
  spec.name = utf8(at(0));
  spec.backend = utf8(at(1));
  spec.side = to_flag(at(2), "on_device") ? Side::kDevice : Side::kHost;
  spec.passes_origin = to_flag(at(3), "passes_origin");
  spec.passes_domain = to_flag(at(4), "passes_domain");
  spec.writes_are_declared = to_flag(at(5), "writes_are_declared");
  spec.copies_wrong_device = to_flag(at(6), "copies_wrong_device");
}

// ---- Sorting arguments. ----

/// Sorts one keyword; false if there is none of that name, or it was given by position.
bool sort_keyword(const CallerSpec& spec, PyObject* name, PyObject* value, Passed& passed,
                  std::vector<int>& place_of) {
  const int count = static_cast<int>(spec.parameters.size());
  for (int i = spec.positional_only; i < count; ++i) {
    PyObject* const parameter = spec.parameters[static_cast<std::size_t>(i)].ptr();
    if (parameter != name && PyUnicode_Compare(parameter, name) != 0) continue;
    int& place = place_of[static_cast<std::size_t>(i)];
    if (place != kNowhere) return false;
    place = ~static_cast<int>(passed.values.size());
    passed.names.push_back(name);
    passed.values.push_back(value);
    return true;
  }
  if (PyUnicode_CompareWithASCIIString(name, "origin") == 0) {
    passed.origin = value;
  } else if (PyUnicode_CompareWithASCIIString(name, "domain") == 0) {
    passed.domain = value;
  } else if (spec.takes_more_keywords) {
    passed.names.push_back(name);
    passed.values.push_back(value);
  } else {
    return false;
  }
  return true;
}

}  // namespace

bool sort_passed(const CallerSpec& spec, PyObject* args, PyObject* kwargs, Passed& passed) {
  const Py_ssize_t count = PyTuple_GET_SIZE(args);
  if (count > spec.positional && !spec.takes_more) return false;
  std::vector<int> place_of(spec.parameters.size(), kNowhere);
  passed.positional.reserve(static_cast<std::size_t>(count));
  for (Py_ssize_t i = 0; i < count; ++i) {
    passed.positional.push_back(PyTuple_GET_ITEM(args, i));
    if (i < spec.positional) place_of[static_cast<std::size_t>(i)] = static_cast<int>(i);
  }
  Py_ssize_t position = 0;
  PyObject *name = nullptr, *value = nullptr;
  while (PyDict_Next(kwargs, &position, &name, &value) != 0) {
    if (!sort_keyword(spec, name, value, passed, place_of)) return false;
  }
  for (std::size_t i = 0; i < place_of.size(); ++i) {
    if (place_of[i] == kNowhere && spec.is_required[i]) return false;
  }
  passed.places.reserve(spec.fields.size());
  for (const FieldSpec& field : spec.fields) {
    passed.places.push_back(place_of[static_cast<std::size_t>(field.parameter)]);
  }
  return true;
}

// ---- origin= and domain=. ----

namespace {

/// Where the origin of that name goes; null: no field has it.
std::optional<Extents>* origin_slot(const CallerSpec& spec, std::string_view name,
                                    CallRequest& request) {
  if (name == "_all_") return &request.origin;
  for (std::size_t f = 0; f < spec.rules.size(); ++f) {
    if (spec.rules[f].name == name) return &request.origins[f];
  }
  return nullptr;
}

std::string field_names(const CallerSpec& spec) {
  std::string names;
  for (const FieldRule& rule : spec.rules) names += (names.empty() ? "'" : ", '") + rule.name + "'";
  return names;
}

void take_origins(const CallerSpec& spec, PyObject* dict, CallRequest& request) {
  request.origins.resize(spec.rules.size());
  // A copy: reading the entries runs code that could change it.
  const py::object items = steal(PyDict_Items(dict));
  for (Py_ssize_t i = 0; i < PyList_GET_SIZE(items.ptr()); ++i) {
    PyObject* const key = PyTuple_GET_ITEM(PyList_GET_ITEM(items.ptr(), i), 0);
    PyObject* const value = PyTuple_GET_ITEM(PyList_GET_ITEM(items.ptr(), i), 1);
    std::optional<Extents>* const slot =
        PyUnicode_Check(key) == 0 ? nullptr : origin_slot(spec, utf8(key), request);
    if (slot == nullptr) {
      raise(ErrorClass::kValue,
            Problem{"origin", "for " + describe(key),
                    "for fields of stencil '" + spec.name + "': " + field_names(spec),
                    "correct the name, or use '_all_' for all others"});
    }
    if (value != Py_None) *slot = to_integers(value, "origin");
  }
}

bool is_given(PyObject* object) { return object != nullptr && object != Py_None; }

}  // namespace

CallRequest to_request(const CallerSpec& spec, const Passed& passed) {
  CallRequest request;
  if (is_given(passed.origin)) {
    if (PyDict_Check(passed.origin) != 0) {
      take_origins(spec, passed.origin, request);
    } else if (is_sequence(passed.origin)) {
      request.origin = to_integers(passed.origin, "origin");
    } else {
      raise(ErrorClass::kType, Problem{"origin", describe(passed.origin),
                                       "a dict of tuples by field, or one tuple for all fields",
                                       "count points in the order of the annotation: I, J, K"});
    }
  }
  if (is_given(passed.domain)) request.domain = to_integers(passed.domain, "domain");
  return request;
}

// ---- The type. ----

namespace {

/// caller(function, args, kwargs, stencil)
PyObject* call_caller(PyObject* self, PyObject* const* arguments, std::size_t count_and_flag,
                      PyObject* keywords) {
  return guarded([&] {
    const CallerSpec& spec = *reinterpret_cast<CallerObject*>(self)->spec;
    const bool fits = PyVectorcall_NARGS(count_and_flag) == 4 && keywords == nullptr &&
                      PyCallable_Check(arguments[0]) != 0 && PyTuple_Check(arguments[1]) != 0 &&
                      PyDict_Check(arguments[2]) != 0;
    if (!fits) raise(ErrorClass::kType, "a caller is called by gridbuf.stencil alone");
    Passed passed;
    if (!sort_passed(spec, arguments[1], arguments[2], passed)) {
      PyObject* const why[] = {arguments[3], arguments[1], arguments[2]};
      steal(PyObject_Vectorcall(helpers().explain, why, 3, nullptr));
      raise(ErrorClass::kInternal, "the arguments of a stencil were not understood");
    }
    return run_call(spec, passed, arguments[0]);
  });
}

void deallocate(PyObject* self) {
  PyTypeObject* const type = Py_TYPE(self);
  delete reinterpret_cast<CallerObject*>(self)->spec;
  PyObject_Free(self);
  Py_DECREF(type);
}

/// _make_caller(parameters, fields, options)
PyObject* make_caller(PyObject*, PyObject* const* arguments, Py_ssize_t count) {
  return guarded([&] {
    if (count != 3 || PyTuple_Check(arguments[1]) == 0) {
      raise(ErrorClass::kType, "_make_caller() is called by gridbuf.stencil alone");
    }
    auto spec = std::make_unique<CallerSpec>();
    add_parameters(arguments[0], *spec);
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(arguments[1]); ++i) {
      add_field(PyTuple_GET_ITEM(arguments[1], i), *spec);
      if (spec->fields.back().parameter == static_cast<int>(spec->parameters.size())) {
        raise_declaration("a field's parameter", PyTuple_GET_ITEM(arguments[1], i));
      }
    }
    add_options(arguments[2], *spec);
    py::object made = steal(reinterpret_cast<PyObject*>(PyObject_New(CallerObject, caller_type)));
    auto* const caller = reinterpret_cast<CallerObject*>(made.ptr());
    caller->vectorcall = call_caller;
    caller->spec = spec.release();
    return made;
  });
}

/// _set_call_helpers(explain, on_device, later, note, copy_warning, slow_warning)
PyObject* set_helpers(PyObject*, PyObject* const* arguments, Py_ssize_t count) {
  return guarded([&] {
    PyObject** const slots[] = {&helpers().explain,      &helpers().on_device,
                                &helpers().later,        &helpers().note,
                                &helpers().copy_warning, &helpers().slow_warning};
    if (count != 6 || helpers().explain != nullptr) {
      raise(ErrorClass::kType, "_set_call_helpers() is called once, by gridbuf.call");
    }
    for (Py_ssize_t i = 0; i < count; ++i) *slots[i] = Py_NewRef(arguments[i]);
    return share(Py_None);
  });
}

PyMemberDef members[] = {
    {"__vectorcalloffset__", T_PYSSIZET, offsetof(CallerObject, vectorcall), READONLY, nullptr},
    {nullptr, 0, 0, 0, nullptr},
};

PyType_Slot slots[] = {
    {Py_tp_doc, const_cast<char*>("What calls a stencil; made by gridbuf.stencil.")},
    {Py_tp_dealloc, reinterpret_cast<void*>(deallocate)},
    {Py_tp_call, reinterpret_cast<void*>(PyVectorcall_Call)},
    {Py_tp_members, members},
    {0, nullptr},
};

PyType_Spec type_spec = {
    .name = "gridbuf._core.Caller",
    .basicsize = sizeof(CallerObject),
    .itemsize = 0,
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_VECTORCALL | Py_TPFLAGS_IMMUTABLETYPE |
             Py_TPFLAGS_DISALLOW_INSTANTIATION,
    .slots = slots,
};

PyMethodDef functions[] = {
    {"_make_caller", reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(make_caller)),
     METH_FASTCALL, "_make_caller(parameters, fields, options, /)\n--\n\nFor gridbuf.call."},
    {"_set_call_helpers", reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(set_helpers)),
     METH_FASTCALL, "For gridbuf.call."},
    {nullptr, nullptr, 0, nullptr},
};

}  // namespace

Helpers& helpers() {
  static Helpers lent;
  return lent;
}

}  // namespace gridbuf::python::calls

namespace gridbuf::python {

void add_call_functions(PyObject* module) {
  const py::object type = steal(PyType_FromSpec(&calls::type_spec));
  calls::caller_type = reinterpret_cast<PyTypeObject*>(Py_NewRef(type.ptr()));
  check(PyModule_AddObjectRef(module, "Caller", type.ptr()));
  check(PyModule_AddFunctions(module, calls::functions));
}

}  // namespace gridbuf::python
