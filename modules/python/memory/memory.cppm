// gridbuf.python.memory: the settings and statistics of host memory, as Python sees them.
//
// Purpose. The private functions (`gridbuf._core._memory_…`) below `gridbuf.memory`,
// `gridbuf.alloc_info`, `gridbuf.set_num_threads` and the memory section of `gridbuf.show_config`.
// What users call is written in Python over them, where keywords, defaults and documentation are
// easier to write and to read.
//
// Key decision. Everything is about the one `host_resource()` of the process. A Buffer keeps the
// info of its block from the moment of the allocation; which pages are in memory is a question to
// the kernel at each call, because it changes.
//
// All functions need the GIL; `_memory_trim` releases it.

module;

#include <Python.h>

export module gridbuf.python.memory;

export namespace gridbuf::python {

/// Adds the functions to `module`. Called once, by the extension's initialisation.
void add_memory_functions(PyObject* module);

}  // namespace gridbuf::python
