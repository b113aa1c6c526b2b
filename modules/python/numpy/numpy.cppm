// gridbuf.python.numpy: NumPy's dtypes and arrays, at the cost of NumPy's own C calls.
//
// Purpose. gridbuf's arrays are described with NumPy's dtypes and leave through NumPy's ndarray.
// This module turns a dtype into what the interface modules know (`DType`) and makes arrays over
// memory that a Buffer owns. It holds all that the bindings know of NumPy's C API.
//
// Key choices. Built against NumPy's headers for its C API 2.0, which later NumPys keep. What a
// dtype means is found out once: a `DTypeRecord` holds it and is shared by all buffers of that
// dtype, and a small cache finds it by the identity of the dtype object; the usual ones are single
// objects in NumPy. So a `float64` costs a look-up.
//
// Only dtypes of a fixed size without objects pass: text and raw types need their length, and a
// record with an object field has no bytes that could be copied or exported.

module;

#include <Python.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>

export module gridbuf.python.numpy;

import gridbuf.interface;
import gridbuf.layout.view;
import gridbuf.layout;
import gridbuf.python.object;

export namespace gridbuf::python {

/// What is known of a NumPy dtype. Immutable and shared.
struct DTypeRecord {
  py::object numpy;    // numpy.dtype, without a subarray
  DType type;          // what the interface modules know
  py::object typestr;  // str, for the array interface
  py::object descr;    // list, for the array interface; none if NumPy has no words for it
  std::string name;    // "float64": for messages
  mutable std::int64_t shares = 0;
};

/// A share in a record, or none. Counted without atomics, as all that holds one is made and dropped
/// with the GIL: two pairs of them would be a tenth of a small allocation.
class DTypePtr {
 public:
  inline DTypePtr() noexcept = default;
  inline explicit DTypePtr(const DTypeRecord* record) noexcept : record_(record) { take(); }
  inline DTypePtr(const DTypePtr& other) noexcept : record_(other.record_) { take(); }
  inline DTypePtr(DTypePtr&& other) noexcept : record_(std::exchange(other.record_, nullptr)) {}
  inline DTypePtr& operator=(DTypePtr other) noexcept {
    std::swap(record_, other.record_);
    return *this;
  }
  inline ~DTypePtr() {
    if (record_ != nullptr && --record_->shares == 0) delete record_;
  }

  inline const DTypeRecord* operator->() const noexcept { return record_; }
  inline const DTypeRecord& operator*() const noexcept { return *record_; }
  inline explicit operator bool() const noexcept { return record_ != nullptr; }

 private:
  inline void take() const noexcept {
    if (record_ != nullptr) ++record_->shares;
  }
  const DTypeRecord* record_ = nullptr;
};

/// A dtype as passed: `subarray` is the shape that a subarray dtype adds to the array's, as in
/// NumPy.
struct RequestedDType {
  DTypePtr record;
  Extents subarray;
};

/// Imports NumPy and finds its C API. Raises ImportError if it is absent or too old.
void load_numpy();

/// The record of what a `dtype` parameter was given; float64 for null and None. NumPy's own errors
/// for what is no dtype; TypeError for objects and for types without a fixed size.
RequestedDType to_dtype(PyObject* object);

/// The record of a numpy.dtype object.
DTypePtr record_of(PyObject* dtype);
/// The same; none for a type whose elements are not a fixed number of bytes, at least one (objects,
/// text of variable length), or that only NumPy knows.
DTypePtr record_or_none(PyObject* dtype);

/// The record of what the interface modules know, which is no structured type. Types that only
/// DLPack can name (bfloat16, FP8) are those of the package ml_dtypes: BufferError without it, and
/// for those that it does not have.
DTypePtr record_of(const DType& type);

/// An ndarray over memory: shape and strides of `view`, element (0, ..., 0) at `first_element`.
/// `base`, a borrowed reference, is kept alive by it.
py::object make_ndarray(const DTypeRecord& dtype, const StridedView& view, std::byte* first_element,
                        bool readonly, PyObject* base);

/// An ndarray is the one object whose fields can be read without asking it.
struct NdarrayFields {
  Extents shape;
  Extents strides_bytes;
  std::byte* first_element;
  PyObject* dtype;  // Borrowed.
  PyObject* base;   // Borrowed; null if it has none.
  bool readonly;
};
bool is_ndarray(PyObject* object);
/// An ndarray and no subclass, which may mean more (a mask, an interface) than its fields say.
bool is_exact_ndarray(PyObject* object);
/// Requires is_ndarray(object).
NdarrayFields fields_of(PyObject* object);

/// Its numpy.dtype, borrowed. Requires the same.
PyObject* dtype_of_ndarray(PyObject* object);

/// `numpy.asarray(object)`.
py::object as_ndarray(PyObject* object);

/// `numpy.copyto(target, source, casting=casting, where=mask)`; a null mask: everywhere.
void copy_by_numpy(PyObject* target, PyObject* source, PyObject* casting, PyObject* mask);

/// `numpy.can_cast(from, to, casting)`, of two numpy.dtype objects.
bool can_cast(PyObject* from, PyObject* to, PyObject* casting);

/// "unsafe" and "same_kind" as Python's texts; borrowed, alive for good.
PyObject* unsafe_casting();
PyObject* same_kind_casting();

/// One element of dtype `dtype` that holds `value`, cast as `numpy.copyto` casts it; null stands
/// for "unsafe", which is what numpy.full does. Its bytes live while the returned 0-d ndarray does.
py::object make_element(PyObject* dtype, PyObject* value, PyObject* casting = nullptr);

/// The same, cast as an assignment to an element does, which refuses more.
py::object make_assigned(const DTypeRecord& dtype, PyObject* value);

/// Whether `value` is one value and not an array of them: a Python number, text or bytes, a NumPy
/// scalar, a 0-d array.
bool is_scalar(PyObject* value);

}  // namespace gridbuf::python
