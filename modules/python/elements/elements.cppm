// gridbuf.python.elements: elements from one array of the host into another.
//
// Purpose. Whatever puts values into memory that the host writes (`copyto`, `from_array`,
// `storage`, an assignment to a storage, a pickle) does it through one function here: copy_arrays,
// which is numpy.copyto on the engine of gridbuf.transfer. Shapes broadcast as there; the same
// rules of casting hold; overlapping arrays come out as if the source had been read first.
//
// Key choice. NumPy decides what is allowed and gridbuf moves the bytes. Whether a cast is allowed
// is asked of numpy.can_cast, not known here. gridbuf.transfer casts floats, and integers of 32 and
// 64 bits to floats. Every other conversion is left to numpy.copyto itself: other pairs of numbers,
// any conversion with a mask, text that changes its length, dates in other units, fields by
// position, objects.
//
// Arrays are taken as ndarrays, because that is what NumPy must get where it takes over, and
// because their fields can be read in a few instructions. Fields are read last, when nothing that
// could run Python code is left to do: such code may give an array another memory.
//
// All functions need the GIL; long copies and fills release it.

module;

#include <Python.h>

#include <cstddef>
#include <cstdint>
#include <optional>

export module gridbuf.python.elements;

import gridbuf.interface;
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

// What the implementation files share.
namespace gridbuf::python::elements {

/// Where the elements of an ndarray are; its fields may change when Python code runs.
struct Elements {
  std::byte* first;
  StridedView view;
};
Elements elements_of(const NdarrayFields& fields, std::int64_t itemsize_bytes);

/// What is copied, broadcast to one shape.
struct Job {
  Elements target;
  Elements source;
  std::optional<Elements> mask;
};
/// Raises what is wrong with types, shapes and writability; runs no Python code before it returns.
Job make_job(PyObject* target, const DTypePtr& to, PyObject* source, const DTypePtr& from,
             PyObject* mask);

bool repeats_one_element(const StridedView& view);

/// Whether other threads shall have the GIL while the target is written.
bool is_long(const StridedView& target);

/// The result of `work`, which touches no Python object.
template <class Work>
auto moved(const StridedView& target, const Work& work) {
  return is_long(target) ? run_without_gil(work) : work();
}

// conversions.cc

/// Whether gridbuf.transfer has the conversion.
bool is_converted_here(const DType& to, const DType& from);

/// Converts numbers, of a pair for which is_converted_here. If one of them cannot be kept, NumPy
/// does it all again, and reports it in its own way: a warning, an exception or nothing, as
/// numpy.errstate has it.
void copy_numbers(PyObject* target, const DTypePtr& to, PyObject* source, const DTypePtr& from);

/// numpy.copyto, after the checks of make_job, of a source and a mask that share no memory with the
/// target: NumPy notices only some overlaps. `to` and `from` may be none.
void copy_by_numpy_apart(PyObject* target, const DTypePtr& to, PyObject* source,
                         const DTypePtr& from, const CopyRule& rule);

}  // namespace gridbuf::python::elements
