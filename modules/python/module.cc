// What the extension module has, in the order in which it is added.

module;

#include <pybind11/pybind11.h>

#include <string>

module gridbuf.python;

namespace gridbuf::python {
namespace {

/// What a bug report should hold of how the core was built.
py::dict build_info() {
  const std::string dlpack =
      std::to_string(dlpack::kMajorVersion) + "." + std::to_string(dlpack::kMinorVersion);
#ifdef NDEBUG
  constexpr char kAssertions[] = "off";
#else
  constexpr char kAssertions[] = "on";
#endif
  using namespace pybind11::literals;
  return py::dict("compiler"_a = "clang " __clang_version__, "assertions"_a = kAssertions,
                  "dlpack"_a = dlpack,
                  "array interface"_a = std::to_string(kArrayInterfaceVersion));
}

/// Objects without a C++ value: pybind11 ends the process where one is made, also by protocols 0
/// and 1 of pickle.
PyObject* refuse_to_make(PyTypeObject* type) {
  PyErr_Format(PyExc_TypeError, "a %s can neither be made nor pickled: it has no value",
               type->tp_name);
  return nullptr;
}

/// Refuses pybind11's base class, which other extensions share, and its subclasses in Python.
void refuse_bare_objects() {
  auto* const base = reinterpret_cast<PyTypeObject*>(py::detail::get_internals().instance_base);
  static const newfunc make = base->tp_new;
  base->tp_new = [](PyTypeObject* type, PyObject* arguments, PyObject* keywords) {
    return guarded<PyObject*>(nullptr, [&] {
      return py::detail::all_type_info(type).empty() ? refuse_to_make(type)
                                                     : make(type, arguments, keywords);
    });
  };
}

/// `help()` names the class of a compiled method's `__self__`. Here that is a record of pybind11,
/// which passes for a module: the `__self__` of CPython's functions.
void hide_function_records(PyObject* module) {
  const py::object record = py::handle(module).attr("get_origin").attr("__self__");
  PyTypeObject* const type = Py_TYPE(record.ptr());
  type->tp_new = [](PyTypeObject* made, PyObject*, PyObject*) { return refuse_to_make(made); };
  check(PyDict_SetItemString(type->tp_dict, "__class__",
                             reinterpret_cast<PyObject*>(&PyModule_Type)));
  PyType_Modified(type);
}

void add_all(PyObject* module) {
  load_numpy();
  add_exceptions(module);
  add_buffer_type(module);
  add_plan_type(module);
  add_creation_functions(module);
  add_name_functions(module);
  add_import_functions(module);
  add_front_ends(module);
  add_device_functions(module);
  add_memory_functions(module);
  add_numpy_allocator_functions(module);
  add_storage_types(module);
  storages::add_copyto_function(module);
  add_call_functions(module);
  hide_function_records(module);
  refuse_bare_objects();
  check(PyModule_AddObjectRef(module, "_build_info", build_info().ptr()));
}

}  // namespace

void fill_module(PyObject* module) {
  try {
    add_all(module);
  } catch (const PythonError&) {
    throw py::error_already_set();
  }
}

}  // namespace gridbuf::python
