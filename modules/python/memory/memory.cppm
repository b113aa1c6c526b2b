// gridbuf.python.memory: the settings and figures of host memory, as Python sees them.
//
// Purpose. The functions below `gridbuf.memory`, `gridbuf.alloc_info`, `gridbuf.set_num_threads`
// and the memory section of `gridbuf.show_config`: memory, and who moves it (threads,
// instructions). They are private (`gridbuf._core._memory_…`): what users call is written in Python
// over them, where keywords, defaults and documentation are easier to write and to read.
//
// Key choice. Everything is about the one `host_resource()` of the process. The facts of a block
// are kept by its Buffer from the moment of the allocation; where its pages really are is asked of
// the kernel when somebody wants to know, because it changes.
//
// All functions need the GIL; giving pages back releases it.

module;

#include <Python.h>

export module gridbuf.python.memory;

export namespace gridbuf::python {

/// Adds the functions to `module`. Called once, by the extension's initialisation.
void add_memory_functions(PyObject* module);

}  // namespace gridbuf::python
