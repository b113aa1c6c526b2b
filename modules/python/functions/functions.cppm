// gridbuf.python.functions: the functions of the package.
//
// Purpose. `allocate` makes a Buffer; `empty`, `zeros`, `ones`, `full`, their `_like` forms and
// `from_array` make plain arrays (an ndarray over a Buffer); `plan` computes without allocating;
// `register_preset`, `presets` and `get_dims` are what else users need of the core. All are
// vectorcalls, as an allocation is short enough for the reading of its arguments to matter.
//
// Key choice. A function is three steps, each from another module: resolve the request, allocate,
// fill. Fill values are cast by NumPy itself, once, into one element that is then repeated; so what
// `full` accepts and how it rounds cannot differ from numpy.full.

module;

#include <Python.h>

export module gridbuf.python.functions;

export namespace gridbuf::python {

/// Adds the functions to `module`. Called once, by the extension's initialisation.
void add_functions(PyObject* module);

}  // namespace gridbuf::python
