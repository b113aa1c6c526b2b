// The extension module `gridbuf._core`.

#include <pybind11/pybind11.h>
#include <unistd.h>
#include <unwind.h>

#include <cstring>

import gridbuf.python;

// A thread that asks for the GIL after the interpreter's end has begun does not get it back: up to
// 3.13 CPython ends that thread, which unwinds its stack. Our frames would drop references without
// the GIL, or end the process where an exception must not leave. So the first of our frames that
// the unwinding meets stops it, and the thread stays there, as in CPython 3.14. The linker's --wrap
// (BUILD.bazel) puts this function before that of the C++ runtime, which finds a frame's handlers.
extern "C" {
_Unwind_Reason_Code __real___gxx_personality_v0(int, _Unwind_Action, _Unwind_Exception_Class,
                                                _Unwind_Exception*, _Unwind_Context*);

_Unwind_Reason_Code __wrap___gxx_personality_v0(int version, _Unwind_Action actions,
                                                _Unwind_Exception_Class exception_class,
                                                _Unwind_Exception* exception,
                                                _Unwind_Context* context) {
#if PY_VERSION_HEX >= 0x030D0000
  const auto& interpreter_ends = Py_IsFinalizing;
#else
  const auto& interpreter_ends = _Py_IsFinalizing;
#endif
  while ((actions & _UA_FORCE_UNWIND) != 0 && interpreter_ends() != 0) pause();
  return __real___gxx_personality_v0(version, actions, exception_class, exception, context);
}
}

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
