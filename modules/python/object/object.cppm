// gridbuf.python.object: errors, references and texts where C++ and Python meet.
//
// Everything below modules/python uses absl::Status and knows no Python. The interpreter wants an
// object, or NULL with an exception set. This module is the way from a status to an exception class
// (by the table of gridbuf.base and nothing else), and makes texts of foreign objects that are
// safe to put in a message.
//
// Key decision: inside the bindings a failure is the C++ exception `PythonError`, which carries
// nothing, because the Python exception is set already. pybind11's own exception moves the Python
// exception out and back in, which costs more than a small allocation. pybind11 functions translate
// PythonError (`add_exceptions` registers it); raw functions wrap their body in `guarded`.
//
// pybind11's smart references are exported from here, so that a file which needs nothing else of
// pybind11 does not compile its headers (4 s per file).
//
// Everything here needs the GIL.

module;

#include <pybind11/pybind11.h>

#include <cstddef>
#include <cstdint>
#include <exception>
#include <memory>
#include <new>
#include <string>
#include <string_view>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

export module gridbuf.python.object;

import gridbuf.base;

export namespace pybind11 {
using pybind11::error_already_set;
using pybind11::gil_scoped_release;
using pybind11::handle;
using pybind11::object;
using pybind11::reinterpret_borrow;
using pybind11::reinterpret_steal;
}  // namespace pybind11

export namespace gridbuf::python {

namespace py = pybind11;

/// Thrown when a Python exception has been set.
struct PythonError {};

/// Takes over a reference; a null one means that an exception is set, and throws PythonError.
inline py::object steal(PyObject* object) {
  if (object == nullptr) throw PythonError();
  return py::reinterpret_steal<py::object>(object);
}
/// Takes over a reference that may be null (and then is none).
inline py::object steal_or_none(PyObject* object) noexcept {
  return py::reinterpret_steal<py::object>(object);
}
/// A further reference to `object`, which may be null.
inline py::object share(PyObject* object) noexcept {
  return py::reinterpret_borrow<py::object>(object);
}

/// A tuple of the objects.
template <class... Objects>
py::object pack(const Objects&... objects) {
  return steal(PyTuple_Pack(sizeof...(objects), objects.ptr()...));
}

/// Throws PythonError if `result` is the -1 of a failed call of Python's C interface.
inline void check(int result) {
  if (result < 0) throw PythonError();
}

/// Creates the exception classes of the error table that Python does not have, as attributes of
/// `module` (a module object), and tells pybind11 about PythonError. Called once, by the
/// extension's initialisation.
void add_exceptions(PyObject* module);

/// Sets the exception that the error table names for `status`, and throws. Requires !status.ok().
[[noreturn]] void raise(const absl::Status& status);

/// Sets an exception of `error_class` with `message`, and throws.
[[noreturn]] void raise(ErrorClass error_class, std::string_view message);
[[noreturn]] void raise(ErrorClass error_class, const Problem& problem);

/// Raises unless `status` is OK.
inline void check(const absl::Status& status) {
  if (!status.ok()) raise(status);
}

/// The value, or its error raised.
template <class T>
T value_of(absl::StatusOr<T> value) {
  if (!value.ok()) raise(value.status());
  return *std::move(value);
}

/// The name of an attribute as Python's own interned text, made at its first use and kept for good.
/// For static variables.
class AttributeName {
 public:
  explicit constexpr AttributeName(const char* text) noexcept : text_(text) {}
  PyObject* get() {
    if (object_ == nullptr) object_ = steal(PyUnicode_InternFromString(text_)).release().ptr();
    return object_;
  }

 private:
  const char* text_;
  PyObject* object_ = nullptr;
};

/// The attribute, or none if looking it up raised AttributeError. That it is missing costs a
/// look-up and no exception, as most of these attributes are missing of most objects.
py::object optional_attribute(PyObject* object, AttributeName& name);

/// Whether an exception of the given class is set; if so, it is cleared.
bool take_error(PyObject* exception_class) noexcept;

/// The object's repr, shortened to about 100 characters; its type's name if repr itself raises.
/// Leaves no exception set. For messages.
std::string describe(PyObject* object);

/// "int", "numpy.ndarray": the object's type, for messages.
std::string type_name(PyObject* object);

/// The UTF-8 text of a str; valid while the object lives. Raises for a str that has none
/// (surrogates). Requires PyUnicode_Check(text).
std::string_view utf8(PyObject* text);

/// A new str.
py::object make_text(std::string_view text);

/// A share in `inner` (which may be empty) and in `object` (which may be null): for memory that an
/// object keeps alive. The last share may be dropped on any thread, with or without the GIL, before
/// or after the interpreter's end. With it the reference goes at once; without it, when the main
/// thread next runs Python, so that nothing ever waits for the GIL; after the end, never.
std::shared_ptr<const void> share_object(std::shared_ptr<const void> inner, PyObject* object);

/// Runs `body`, which touches no Python object, without the GIL; its value or status.
template <class Body>
auto run_without_gil(Body&& body) {
  const py::gil_scoped_release released;
  return body();
}

/// Memory of objects that are gone, for those of their type to come. The GIL guards it. Such
/// objects are longer than the blocks that Python's and the C library's allocators keep at hand:
/// this is a fifth of the time of a small allocation. Not with the address sanitizer, which could
/// not see a use after free. For static variables.
template <std::size_t length_bytes>
class SpareObjects {
 public:
  /// Null if there is no memory.
  inline void* take() noexcept {
    return count_ > 0 ? objects_[--count_] : PyObject_Malloc(length_bytes);
  }
  inline void give_back(void* object) noexcept {
    if (count_ < kCapacity) {
      objects_[count_++] = object;
    } else {
      PyObject_Free(object);
    }
  }

 private:
#if __has_feature(address_sanitizer)
  static constexpr int kCapacity = 0;
#else
  static constexpr int kCapacity = 16;
#endif
  int count_ = 0;
  void* objects_[16];
};

/// Runs `body` and returns its result; whatever it throws becomes an exception and `failure`.
template <class Result, class Body>
Result guarded(Result failure, Body&& body) noexcept {
  try {
    return body();
  } catch (const PythonError&) {
    return failure;
  } catch (py::error_already_set& error) {
    error.restore();
    return failure;
  } catch (const std::bad_alloc&) {
    PyErr_NoMemory();
    return failure;
  } catch (const std::exception& error) {
    PyErr_Format(PyExc_RuntimeError, "gridbuf: %s; this is a defect of gridbuf, please report it",
                 error.what());
    return failure;
  }
}

/// `guarded` for functions that return an object.
template <class Body>
PyObject* guarded(Body&& body) noexcept {
  return guarded<PyObject*>(nullptr, [&body]() -> PyObject* { return body().release().ptr(); });
}

/// Finishes a class of pybind11: it belongs to `package` and cannot be changed; calling it or its
/// `__new__` gives `make(arguments, keywords)`. Without this, `__new__` makes an object whose C++
/// value does not exist, and the next use of that object ends the process.
template <py::object (*make)(PyObject* arguments, PyObject* keywords)>
void close_class(py::handle type, const char* package) {
  check(PyObject_SetAttrString(type.ptr(), "__module__", make_text(package).ptr()));
  auto* const closed = reinterpret_cast<PyTypeObject*>(type.ptr());
  closed->tp_new = [](PyTypeObject*, PyObject* arguments, PyObject* keywords) {
    return guarded([&] { return make(arguments, keywords); });
  };
  closed->tp_init = [](PyObject*, PyObject*, PyObject*) { return 0; };
  closed->tp_flags |= Py_TPFLAGS_IMMUTABLETYPE;
  PyType_Modified(closed);
}

}  // namespace gridbuf::python
