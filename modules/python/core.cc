// The extension module `gridbuf._core`: puts the types and functions of the modules together.

#include <Python.h>

#include <string>

#ifdef Py_GIL_DISABLED
#error "gridbuf relies on the GIL: set GRIDBUF_PYTHON to a Python without the 't' of a free-threaded build"
#endif

import gridbuf.interface.dlpack;
import gridbuf.interface.numpy;
import gridbuf.python.buffer;
import gridbuf.python.call;
import gridbuf.python.copyto;
import gridbuf.python.device;
import gridbuf.python.functions;
import gridbuf.python.imports;
import gridbuf.python.memory;
import gridbuf.python.named;
import gridbuf.python.numpy;
import gridbuf.python.object;
import gridbuf.python.plan;
import gridbuf.python.storage;

namespace gridbuf::python {
namespace {

// Subinterpreters are refused (m_size -1): NumPy's types are those of one interpreter.
PyModuleDef definition = {
    .m_base = PyModuleDef_HEAD_INIT,
    .m_name = "gridbuf._core",
    .m_doc = "The compiled core of gridbuf; import gridbuf instead.",
    .m_size = -1,
    .m_methods = nullptr,
    .m_slots = nullptr,
    .m_traverse = nullptr,
    .m_clear = nullptr,
    .m_free = nullptr,
};

/// What a bug report should hold of how the core was built.
Ref build_facts() {
  const std::string dlpack =
      std::to_string(dlpack::kMajorVersion) + "." + std::to_string(dlpack::kMinorVersion);
#ifdef NDEBUG
  constexpr char kAssertions[] = "off";
#else
  constexpr char kAssertions[] = "on";
#endif
  return Ref::steal(Py_BuildValue(
      "{ssssssss}", "compiler", "clang " __clang_version__, "assertions", kAssertions, "dlpack",
      dlpack.c_str(), "array interface", std::to_string(kArrayInterfaceVersion).c_str()));
}

Ref make_module() {
  load_numpy();
  Ref module = Ref::steal(PyModule_Create(&definition));
  add_exceptions(module.get());
  add_buffer_type(module.get());
  add_plan_type(module.get());
  add_functions(module.get());
  add_import_functions(module.get());
  add_device_functions(module.get());
  add_memory_functions(module.get());
  add_named_functions(module.get());
  add_storage_types(module.get());
  add_copyto_function(module.get());
  add_call_functions(module.get());
  check(PyModule_AddObjectRef(module.get(), "_build_facts", build_facts().get()));
  return module;
}

}  // namespace
}  // namespace gridbuf::python

PyMODINIT_FUNC PyInit__core() {
  return gridbuf::python::guarded([] { return gridbuf::python::make_module(); });
}
