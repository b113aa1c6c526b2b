// gridbuf.python.named: broadcasting by dimension names, for the package's Python part.
//
// Purpose. The array functions of storages are written in Python, as the work that they hand out is
// NumPy's or CuPy's. What they compute about dimensions is gridbuf.layout.view, and nothing of it
// is repeated in Python: this module is the way there.
//
// Key choice. A field is the plain tuple that a storage's `_parameters` begins with: (dims, shape,
// halo, aligned_index, layout, alignment_size). Plain tuples can be compared and hashed, so that
// the Python side remembers the answer for operands it has seen before; an expression in a time
// loop asks once. What comes in is checked like any argument, because nothing stops a caller from
// passing something else.

module;

#include <Python.h>

export module gridbuf.python.named;

export namespace gridbuf::python {

/// Adds `_join`, `_reduce` and `_align` to `module`. Called once, by the extension's
/// initialisation.
///
/// _join(fields, others) -> field: what an operation gives; `others` are (dims, shape) pairs.
/// _reduce(field, axes, keep) -> field: what is left when `axes` are reduced.
/// _align(dims, shape, target) -> (axes, new): `array.transpose(axes)`, then a new axis of extent 1
/// at each position in `new`, in ascending order, has its dimensions in the order of `target`.
///
/// ValueError where gridbuf.layout.view says so; TypeError and ValueError for arguments that are
/// no fields.
void add_named_functions(PyObject* module);

}  // namespace gridbuf::python
