// gridbuf.python.plan: `gridbuf.LayoutPlan`, a layout plan as a Python value.
//
// Purpose. A plan says where every element lies, before or without any memory. Python programs get
// it from `gridbuf.plan(...)` or `Buffer.plan`, print it, compare it, draw it, or use it as a key.
//
// Key choice. The object is a value: immutable, compared by all that it holds, hashable, and
// pickled as the request that made it, so that an unpickled plan has been checked like any other.
// It adds to the C++ plan only the names of the dimensions, which a drawing needs. Like a Buffer it
// cannot be made by calling its type, so that none exists without contents.

module;

#include <Python.h>

export module gridbuf.python.plan;

import gridbuf.layout;
import gridbuf.python.object;

export namespace gridbuf::python {

/// Adds the class, and the function that unpickles it, to `module`. Called once, by the extension's
/// initialisation.
void add_plan_type(PyObject* module);

/// A new `gridbuf.LayoutPlan`. `dims` has one name per dimension.
py::object make_plan_object(const Layout& plan, const Dims& dims);

}  // namespace gridbuf::python
