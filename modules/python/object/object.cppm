// gridbuf.python.object: references, errors and texts at the border to Python.
//
// Purpose. Everything below modules/python speaks absl::Status and knows no Python; everything here
// is called by an interpreter that wants a pointer or NULL with an exception set. This module is
// the border: owning references, the way from a status to an exception class (by the table of
// gridbuf.error and nothing else), and texts of foreign objects that are safe to put in a message.
//
// Key choice. Inside the bindings a failure is the C++ exception `PythonError`, which carries
// nothing: the Python exception is already set. So code that reads arguments is written as plain
// expressions, and every entry point is wrapped once in `guarded`, which turns whatever escapes
// (a failed allocation of the C++ library included) into NULL with an exception. No C++ exception
// ever reaches the interpreter.
//
// Everything here needs the GIL.

module;

#include <Python.h>

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

export namespace gridbuf::python {

/// Thrown when a Python exception has been set. Caught by `guarded`.
struct PythonError {};

/// An owning reference, or none. Its members are declared inline, which those of a class in a
/// module are not by themselves.
class Ref {
 public:
  Ref() noexcept = default;
  inline Ref(Ref&& other) noexcept : object_(std::exchange(other.object_, nullptr)) {}
  inline Ref& operator=(Ref&& other) noexcept {
    std::swap(object_, other.object_);
    return *this;
  }
  Ref(const Ref&) = delete;
  Ref& operator=(const Ref&) = delete;
  inline ~Ref() {
    if (object_ != nullptr) Py_DecRef(object_);
  }

  /// Takes over a reference; a null one means that an exception is set, and throws PythonError.
  static inline Ref steal(PyObject* object) {
    if (object == nullptr) throw PythonError();
    return Ref(object);
  }
  /// Takes over a reference that may be null (and then is none).
  static inline Ref steal_or_none(PyObject* object) noexcept { return Ref(object); }
  /// A further reference to `object`, which may be null.
  static inline Ref share(PyObject* object) noexcept {
    Py_IncRef(object);
    return Ref(object);
  }

  inline PyObject* get() const noexcept { return object_; }
  /// Gives the reference away.
  inline PyObject* release() noexcept { return std::exchange(object_, nullptr); }
  inline explicit operator bool() const noexcept { return object_ != nullptr; }

 private:
  inline explicit Ref(PyObject* object) noexcept : object_(object) {}
  PyObject* object_ = nullptr;
};

/// Throws PythonError if `result` is the -1 of a failed call of Python's C interface.
inline void check(int result) {
  if (result < 0) throw PythonError();
}

/// Creates the exception classes of the error table that Python does not have, as attributes of
/// `module` (a module object). Called once, by the extension's initialisation.
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
    if (object_ == nullptr) object_ = Ref::steal(PyUnicode_InternFromString(text_)).release();
    return object_;
  }

 private:
  const char* text_;
  PyObject* object_ = nullptr;
};

/// The attribute, or none if looking it up raised AttributeError. That it is missing costs a
/// look-up and no exception, as most of these attributes are missing of most objects.
Ref optional_attribute(PyObject* object, AttributeName& name);

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
Ref make_text(std::string_view text);

/// A share in `inner` (which may be empty) and in `object` (which may be null): for memory that an
/// object keeps alive. The last share may be dropped on any thread, with or without the GIL, before
/// or after the interpreter's end. With it the reference goes at once; without it, when the main
/// thread next runs Python, so that nothing ever waits for the GIL; after the end, never.
std::shared_ptr<const void> share_object(std::shared_ptr<const void> inner, PyObject* object);

/// Lets other threads run while it lives, whatever is thrown. Nothing of Python may be touched
/// then.
class ReleasedGil {
 public:
  ReleasedGil() : thread_(PyEval_SaveThread()) {}
  ~ReleasedGil() { PyEval_RestoreThread(thread_); }
  ReleasedGil(const ReleasedGil&) = delete;
  ReleasedGil& operator=(const ReleasedGil&) = delete;

 private:
  PyThreadState* thread_;
};

/// Runs `body`, which touches no Python object, without the GIL; its value or status.
template <class Body>
auto run_without_gil(Body&& body) {
  const ReleasedGil released;
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
  return guarded<PyObject*>(nullptr, [&body]() -> PyObject* { return body().release(); });
}

}  // namespace gridbuf::python
