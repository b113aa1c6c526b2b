// The parts of the extension module that only add functions to it, one per file. Each is called
// once, by the initialisation.
#pragma once

#include <Python.h>

namespace gridbuf::python {

void add_device_functions(PyObject* module);
void add_memory_functions(PyObject* module);
void add_named_functions(PyObject* module);

}  // namespace gridbuf::python
