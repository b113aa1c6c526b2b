// gridbuf.python.call: the compiled part of a stencil's call.
//
// Purpose. `gridbuf.call` (Python) declares a stencil and runs the protocol of its calls: hooks of
// foreign fields, warnings, copies, the function, the order of what follows. This module reads all
// fields of a call, binds and checks them by the rules of gridbuf.call (C++), and makes the arrays
// that the function gets.
//
// Key choice: `StencilRules.bind` does all of that for all fields at once, and marks the fields
// about to be written, because most calls need nothing else. It returns None for the other calls:
// fields of other libraries, memory on the other side only, memory that is slow. For these Python
// takes one step after the other and calls `bind` again, with the hooks that it has called.
//
// Nothing is kept between calls: `StencilRules` holds the declaration, and no field, shape or
// verdict. All functions need the GIL.

module;

#include <Python.h>

export module gridbuf.python.call;

export namespace gridbuf::python {

/// Adds `StencilRules`, `BoundStencil`, `FieldHooks` and their functions to `module`. Called once,
/// by the extension's initialisation.
void add_call_functions(PyObject* module);

}  // namespace gridbuf::python
