// The extension module `gridbuf._core`.

#include <pybind11/pybind11.h>

#include <cstring>

import gridbuf.python;

PYBIND11_MODULE(_core_of_main_interpreter, module, pybind11::mod_gil_not_used()) {
  module.doc() = "The compiled core of gridbuf; import gridbuf instead.";
  gridbuf::python::fill_module(module.ptr());
}

// NumPy's types belong to one interpreter, so subinterpreters are refused. That must happen before
// pybind11 looks for its own state, which on Python 3.11 never returns: it waits for the main
// interpreter.
PyMODINIT_FUNC PyInit__core() {
#ifdef Py_GIL_DISABLED
  constexpr bool kFreeThreaded = true;
#else
  constexpr bool kFreeThreaded = false;
#endif
  // Objects of the two builds of a CPython have different layouts, and the file's name is the same.
  if ((std::strstr(Py_GetVersion(), "free-threading") != nullptr) != kFreeThreaded) {
    PyErr_SetString(PyExc_ImportError,
                    kFreeThreaded
                        ? "gridbuf._core was built for free-threaded Python, and this is a "
                          "Python with the GIL; install gridbuf for this Python"
                        : "gridbuf._core was built for Python with the GIL, and this is a "
                          "free-threaded Python; install gridbuf for this Python");
    return nullptr;
  }
  if (PyInterpreterState_Get() != PyInterpreterState_Main()) {
    PyErr_SetString(PyExc_ImportError,
                    "gridbuf._core: found a subinterpreter; only the main interpreter is "
                    "supported; import gridbuf there, or start another process");
    return nullptr;
  }
  return PyInit__core_of_main_interpreter();
}
