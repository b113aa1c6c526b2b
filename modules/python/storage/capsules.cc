// Storages of gridbuf.h as storages of Python, and back: two handles of one storage.

module;

#include <pybind11/pybind11.h>

#include <memory>
#include <string>
#include <utility>

#include "modules/c/gridbuf.h"
#include "modules/python/support/docstrings.h"

module gridbuf.python;

import gridbuf.c;

namespace gridbuf::python::storages {
namespace {

using CHandle = c::Handle<Storage>;

constexpr const char* kCapsule = GRIDBUF_STORAGE_CAPSULE;

py::object from_c(const py::object& capsule) {
  if (PyCapsule_IsValid(capsule.ptr(), kCapsule) == 0) {
    raise(ErrorClass::kType,
          Problem{"capsule", describe(capsule.ptr()),
                  std::string("a PyCapsule of a gridbuf_storage with the name '") + kCapsule + "'",
                  "make it with PyCapsule_New(storage, GRIDBUF_STORAGE_CAPSULE, destructor)"});
  }
  const auto* const handle = static_cast<CHandle*>(PyCapsule_GetPointer(capsule.ptr(), kCapsule));
  check(c::check(handle));
  Storage storage = handle->value();
  const DTypePtr dtype = record_of(storage.dtype());
  return make_storage(std::move(storage), dtype);
}

py::object to_c(const py::object& storage) {
  if (!is_storage(storage.ptr())) {
    raise(ErrorClass::kType,
          Problem{"storage", describe(storage.ptr()), "a gridbuf.storage.Storage",
                  "make one with gridbuf.storage.as_storage(array)"});
  }
  const StorageObject& object = *object_of(storage.ptr());
  if (object.touch != nullptr) {
    raise(ErrorClass::kValue,
          "to_c: the producer of this storage's memory is told of every write, and C does not tell "
          "it; pass a copy, gridbuf.storage.storage(storage)");
  }
  if (!record_of(object.storage().dtype())->numpy.equal(object.dtype->numpy)) {
    raise(ErrorClass::kType, Problem{"dtype", object.dtype->name, "a type without fields",
                                     "pass a storage of one field, or of the bytes"});
  }
  auto handle = std::make_unique<CHandle>(c::magic<Storage>(), object.storage());
  py::object capsule = steal(PyCapsule_New(handle.get(), kCapsule, [](PyObject* dying) {
    if (c::release(static_cast<CHandle*>(PyCapsule_GetPointer(dying, kCapsule))).ok()) return;
    PyErr_SetString(PyExc_ValueError,
                    "a capsule of gridbuf.storage.to_c: its storage was released; the capsule "
                    "releases it");
    PyErr_WriteUnraisable(nullptr);
  }));
  handle.release();
  return capsule;
}

}  // namespace

void add_capsule_functions(PyObject* module, py::handle package) {
  py::options options;
  options.disable_function_signatures();
  const py::handle core = module;
  core.attr("_storage_from_c") = py::cpp_function(from_c, py::name("from_c"), py::scope(package),
                                                  doc("_storage_from_c"), py::arg("capsule"));
  core.attr("_storage_to_c") = py::cpp_function(to_c, py::name("to_c"), py::scope(package),
                                                doc("_storage_to_c"), py::arg("storage"));
}

}  // namespace gridbuf::python::storages
