// The extension module `gridbuf._core`: puts the types and functions of the modules together.

#include <pybind11/pybind11.h>

#include <string>

#include "modules/python/src/parts.h"

#ifdef Py_GIL_DISABLED
#error \
    "gridbuf relies on the GIL: set GRIDBUF_PYTHON to a Python without the 't' of a free-threaded build"
#endif

import gridbuf.interface.dlpack;
import gridbuf.interface.numpy;
import gridbuf.python.buffer;
import gridbuf.python.call;
import gridbuf.python.storage;
import gridbuf.python.support;

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

void fill_module(PyObject* module) {
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
  add_named_functions(module);
  add_storage_types(module);
  add_copyto_function(module);
  add_call_functions(module);
  check(PyModule_AddObjectRef(module, "_build_info", build_info().ptr()));
}

}  // namespace
}  // namespace gridbuf::python

PYBIND11_MODULE(_core_of_main_interpreter, module) {
  module.doc() = "The compiled core of gridbuf; import gridbuf instead.";
  try {
    gridbuf::python::fill_module(module.ptr());
  } catch (const gridbuf::python::PythonError&) {
    throw pybind11::error_already_set();
  }
}

// NumPy's types belong to one interpreter, so subinterpreters are refused. That must happen before
// pybind11 looks for its own state, which on Python 3.11 never returns: it waits for the main
// interpreter.
PyMODINIT_FUNC PyInit__core() {
  if (PyInterpreterState_Get() != PyInterpreterState_Main()) {
    PyErr_SetString(PyExc_ImportError,
                    "gridbuf._core: found a subinterpreter; only the main interpreter is "
                    "supported; import gridbuf there, or start another process");
    return nullptr;
  }
  return PyInit__core_of_main_interpreter();
}
