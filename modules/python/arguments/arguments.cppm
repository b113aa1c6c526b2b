// gridbuf.python.arguments: from whatever a Python caller passed to values of gridbuf.
//
// Purpose. A parameter may be any object at all: an int of a thousand digits, a list that changes
// while it is read, a class whose __len__ raises, a generator that never ends. Here is the one
// place that looks at such objects. What comes out is a value of gridbuf.layout or an exception:
// TypeError for the wrong kind, ValueError for a value out of bounds, the object's own exception if
// it raised.
//
// Key choices. Integers are what `operator.index` accepts, so that NumPy's integers work and floats
// do not; but bool is refused, because `shape=(True, 3)` is a mistake and not a 1. Sequences are
// asked for their length first and are never read beyond kMaxNdim entries, so that nothing is
// copied before it is bounded. Rules of values (is it a permutation? is the name known?) are not
// here: they belong to gridbuf.layout, and this module hands over what it read.

module;

#include <Python.h>

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

export module gridbuf.python.arguments;

import gridbuf.device;
import gridbuf.layout.view;
import gridbuf.layout;
import gridbuf.python.object;

export namespace gridbuf::python {

/// The most parameters that a signature has.
inline constexpr int kMaxParameters = 16;

/// The parameters of a function: its name, for messages ("empty"), the names of all parameters,
/// positional ones first, and how many of them may be passed by position. One static object per
/// function: it keeps the names as Python's own text objects, of which there is one per name in a
/// process, so that a keyword is found by its address. Comparing text would take longer than a
/// small allocation.
struct Signature {
  const char* function;
  std::span<const char* const> names;
  int positional;
  mutable std::array<PyObject*, kMaxParameters> interned =
      {};  // Made by the first call with keywords.
};

/// What to say of a keyword that the signature does not have: sets a TypeError and throws.
using UnknownKeyword = void (*)(const Signature& signature, PyObject* keyword);

/// Sorts the arguments of a vectorcall into `values` (one entry per name, all null before).
/// TypeError for too many positional arguments and for a parameter given twice; `unknown` for other
/// names.
void sort_arguments(const Signature& signature, PyObject* const* arguments,
                    Py_ssize_t positional_count, PyObject* keyword_names,
                    std::span<PyObject*> values, UnknownKeyword unknown);

/// The default of UnknownKeyword: a TypeError that lists the names there are.
void unexpected_keyword(const Signature& signature, PyObject* keyword);

/// An integer. TypeError for anything else (bool too); ValueError beyond 64 bits. `what` names the
/// value in messages: "alignment_size".
std::int64_t to_integer(PyObject* object, std::string_view what);

/// Whether `object` can be read by the function below: a sequence, but no text and no bytes.
bool is_sequence(PyObject* object);

/// A sequence of at most kMaxNdim integers. TypeError for other kinds, ValueError for more entries
/// or entries beyond 64 bits.
Extents to_integers(PyObject* object, std::string_view what);

/// A shape: a sequence of integers, or one integer for one dimension, as in NumPy. ValueError,
/// naming the limit, for negative extents and for those beyond 64 bits; `dtype` is for messages.
Extents to_shape(PyObject* object, std::string_view dtype);

/// The names of `ndim` dimensions: a str of one-character names or a sequence of str.
Dims to_dims(PyObject* object, int ndim);

/// The names as a tuple of str.
py::object from_dims(const Dims& dims);

/// A layout map: a sequence of integers, or a callable of the tuple of names that returns one.
LayoutMap to_layout(PyObject* object, const Dims& dims);

/// A kind of memory by its name; nothing for null and None.
std::optional<MemoryKind> to_memory_kind(PyObject* object);

/// True or False; TypeError for anything else.
bool to_flag(PyObject* object, std::string_view what);

/// The items between the brackets of a[key]: integers, slices, None and `...`. TypeError for the
/// rest (arrays and lists select by advanced indexing, which a view cannot do); IndexError for
/// integers beyond 64 bits.
std::vector<SubscriptItem> to_subscript(PyObject* key);

/// A tuple of int.
py::object from_integers(std::span<const std::int64_t> values);
py::object from_integers(std::span<const int> values);

}  // namespace gridbuf::python
