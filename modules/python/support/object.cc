module;

#include <pybind11/pybind11.h>

#include <array>
#include <atomic>
#include <cstddef>
#include <exception>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "absl/status/status.h"

module gridbuf.python.support;

import gridbuf.base;

namespace gridbuf::python {
namespace {

constexpr Py_ssize_t kDescribedCharacters = 100;

// By row of the error table; written once, while the extension is imported, and kept for good.
std::array<PyObject*, kErrorTable.size()> exception_classes{};

const char* documentation(ErrorClass error_class) {
  switch (error_class) {
    case ErrorClass::kNoSuchBuffer:
      return "The asked side (host or device) of an array does not exist.";
    case ErrorClass::kDeviceUnavailable:
      return "No device, or the library that drives it is absent.";
    case ErrorClass::kSyncConflict:
      return "Host and device both hold newer data in the same region.";
    default:
      return "";
  }
}

}  // namespace

void add_exceptions(PyObject* module) {
  py::register_local_exception_translator([](std::exception_ptr failure) {
    try {
      std::rethrow_exception(failure);
    } catch (const PythonError&) {  // Python's exception is set already.
    }
  });
  const auto builtin = [](std::string_view name) {
    return PyDict_GetItemString(PyEval_GetBuiltins(), std::string(name).c_str());
  };
  for (const ErrorRow& row : kErrorTable) {
    PyObject*& entry = exception_classes[static_cast<std::size_t>(row.error_class)];
    if (row.python_base.empty()) {
      entry = Py_XNewRef(builtin(row.python_name));
      continue;
    }
    const std::string name(row.python_name);
    entry =
        steal(PyErr_NewExceptionWithDoc(("gridbuf." + name).c_str(), documentation(row.error_class),
                                        builtin(row.python_base), nullptr))
            .release()
            .ptr();
    check(PyModule_AddObjectRef(module, name.c_str(), entry));
  }
}

void raise(ErrorClass error_class, std::string_view message) {
  PyErr_SetObject(exception_classes[static_cast<std::size_t>(error_class)],
                  make_text(message).ptr());
  throw PythonError();
}

void raise(ErrorClass error_class, const Problem& problem) {
  raise(error_class, problem_text(problem));
}

void raise(const absl::Status& status) {
  raise(error_class_of(status), std::string(status.message()));
}

py::object optional_attribute(PyObject* object, AttributeName& name) {
  PyObject* value = nullptr;
#if PY_VERSION_HEX >= 0x030D0000
  check(PyObject_GetOptionalAttr(object, name.get(), &value));
#else
  check(_PyObject_LookupAttr(object, name.get(), &value));  // The same, before it was public.
#endif
  return steal_or_none(value);
}

bool take_error(PyObject* exception_class) noexcept {
  if (PyErr_ExceptionMatches(exception_class) == 0) return false;
  PyErr_Clear();
  return true;
}

std::string describe(PyObject* object) {
  try {
    const py::object text = steal(PyObject_Repr(object));
    const Py_ssize_t length = PyUnicode_GetLength(text.ptr());
    const py::object kept = steal(PyUnicode_Substring(text.ptr(), 0, kDescribedCharacters));
    const py::object bytes =
        steal(PyUnicode_AsEncodedString(kept.ptr(), "utf-8", "backslashreplace"));
    return PyBytes_AS_STRING(bytes.ptr()) + std::string(length > kDescribedCharacters ? "..." : "");
  } catch (const PythonError&) {
    PyErr_Clear();
    // An int of thousands of digits has no repr either: Python limits that conversion.
    const std::string size = PyLong_Check(object) != 0 ? " beyond 64 bits" : "";
    return "<" + type_name(object) + size + ">";
  }
}

std::string type_name(PyObject* object) { return Py_TYPE(object)->tp_name; }

namespace {

// ---- References that are dropped on any thread: without the GIL, into a list. ----

struct SharedObject {
  std::shared_ptr<const void> inner;
  PyObject* object;
  SharedObject* next = nullptr;
};

std::atomic<SharedObject*> dropped_objects = nullptr;

/// Lets go of all that was dropped without the GIL. Runs with it, on the main thread.
int drop_objects(void* /*unused*/) {
  SharedObject* shared = dropped_objects.exchange(nullptr, std::memory_order_acquire);
  while (shared != nullptr) {
    const std::unique_ptr<SharedObject> owned(std::exchange(shared, shared->next));
    Py_DECREF(owned->object);
  }
  return 0;
}

void drop_shared(SharedObject* shared) noexcept {
  shared->inner.reset();
  // Python's own check of the GIL says yes after the interpreter's end as well.
  if (Py_IsInitialized() != 0 && PyGILState_Check() != 0) {
    Py_DECREF(shared->object);
    delete shared;
    return;
  }
  shared->next = dropped_objects.load(std::memory_order_relaxed);
  while (!dropped_objects.compare_exchange_weak(shared->next, shared, std::memory_order_release,
                                                std::memory_order_relaxed)) {
  }
  // If Python's own list is full the next object that is shared takes ours along.
  if (Py_IsInitialized() != 0) Py_AddPendingCall(drop_objects, nullptr);
}

}  // namespace

std::shared_ptr<const void> share_object(std::shared_ptr<const void> inner, PyObject* object) {
  if (object == nullptr) return inner;
  drop_objects(nullptr);
  // Drops what it is given also if it fails.
  return {new SharedObject{std::move(inner), Py_NewRef(object)}, drop_shared};
}

std::string_view utf8(PyObject* text) {
  Py_ssize_t length = 0;
  const char* characters = PyUnicode_AsUTF8AndSize(text, &length);
  if (characters == nullptr) throw PythonError();
  return {characters, static_cast<std::size_t>(length)};
}

py::object make_text(std::string_view text) {
  return steal(
      PyUnicode_DecodeUTF8(text.data(), static_cast<Py_ssize_t>(text.size()), "backslashreplace"));
}

}  // namespace gridbuf::python
