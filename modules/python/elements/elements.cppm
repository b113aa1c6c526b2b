// gridbuf.python.elements: elements from one array of the host into another.
//
// Purpose. Whatever puts values into memory that the host writes (`copyto`, `from_array`,
// `storage`, an assignment to a storage, a pickle) does it through one function here: copy_arrays,
// which is numpy.copyto on the engine of gridbuf.transfer. Shapes broadcast as there; the same
// rules of casting hold; overlapping arrays come out as if the source had been read first.
//
// Key choice. NumPy decides what is allowed and gridbuf moves the bytes. Whether a cast is allowed
// is asked of numpy.can_cast, not known here. What the engine has no word for (text that changes
// its length, dates in other units, fields by position, objects) is left to numpy.copyto itself.
//
// Arrays are taken as ndarrays, because that is what NumPy must get where it takes over, and
// because their fields can be read in a few instructions. Fields are read last, when nothing that
// could run Python code is left to do: such code may give an array another memory.
//
// All functions need the GIL; long copies and fills release it.

module;

#include <Python.h>

#include <cstddef>

export module gridbuf.python.elements;

import gridbuf.layout;
import gridbuf.python.numpy;
import gridbuf.python.object;

export namespace gridbuf::python {

/// What numpy.copyto calls `casting` and `where`.
struct CopyRule {
  PyObject* casting = nullptr;  // a str that NumPy knows, borrowed; null: "unsafe"
  PyObject* mask = nullptr;     // an ndarray of bool, borrowed; null: everywhere
};

/// `numpy.copyto(target, source, casting, where)` for two ndarrays that the caller keeps alive.
/// ValueError for a target that is read-only, and for shapes that do not broadcast to the target's;
/// TypeError for a cast that the rule forbids; else NumPy's own errors and warnings; MemoryError.
/// The target is untouched after them, but for errors that NumPy raises in the middle of a cast.
void copy_arrays(PyObject* target, PyObject* source, const CopyRule& rule = {});

/// A parameter `casting`: one of numpy's five words; null if it was not given. TypeError and
/// ValueError for other objects.
PyObject* to_casting(PyObject* object);

/// TypeError unless `casting`, a str that NumPy knows or null for "unsafe", allows the cast between
/// two numpy.dtype objects.
void check_cast(PyObject* from, PyObject* to, PyObject* casting);

/// Copies elements between views of one shape and item size. Each block must be kept alive by the
/// caller.
void copy_memory(std::byte* target_block, const StridedView& target, const std::byte* source_block,
                 const StridedView& source);

/// Writes `element` (of the view's item size) to every element. The block likewise.
void fill_memory(std::byte* target_block, const StridedView& target, const std::byte* element);

/// Whether the elements of the two types are the same bytes.
bool is_same_type(const DTypePtr& a, const DTypePtr& b);

}  // namespace gridbuf::python
