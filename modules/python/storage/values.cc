// Copies, conversions, fills and pickles of storages.

module;

#include <Python.h>

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

module gridbuf.python.storage;

import gridbuf.base;
import gridbuf.layout;
import gridbuf.python.buffer;
import gridbuf.python.support;
import gridbuf.storage;

namespace gridbuf::python::storages {

py::object copy(const StorageObject& object) {
  const Storage source = object.storage;  // Of its own: the halo may be set meanwhile.
  return make_storage(value_of(run_without_gil([&] { return source.copy(); })), object.dtype);
}

py::object as_type(StorageObject& object, PyObject* dtype, PyObject* casting, bool copied) {
  const RequestedDType wanted = to_dtype(dtype);
  if (!wanted.subarray.empty()) {
    raise(ErrorClass::kType,
          Problem{"dtype", describe(dtype), "a type without a shape", "pass its base type"});
  }
  if (wanted.record->numpy.is(object.dtype->numpy)) {
    return copied ? copy(object) : share(object.self());
  }
  check_cast(object.dtype->numpy.ptr(), wanted.record->numpy.ptr(), to_casting(casting));
  const StorageSource source = storage_source_of(object.self(), nullptr);
  py::object made =
      allocate_storage(resolve_storage_like(source, wanted.record->numpy.ptr(), {}));
  assign_by_position(*object_of(made.ptr()), host_elements(object, object.storage).ptr());
  return made;
}

void fill(const StorageObject& object, PyObject* value) {
  if (!is_scalar(value)) {
    raise(ErrorClass::kType, Problem{"value", describe(value), "one value",
                                     "assign arrays with storage[...] = value"});
  }
  check_writable(object);
  assign(object, object.storage, value);
}

/// _restore_storage(parameters, elements): `_parameters` without its last entry (an axis that None
/// has put in is an ordinary one afterwards), and the elements in row-major order. A raw function,
/// because pickle finds functions of pybind11 by no name.
PyObject* restore_storage(PyObject*, PyObject* const* arguments, Py_ssize_t count) {
  return guarded([&] {
    // What a pickle holds is checked like any other arguments: it may come from anywhere.
    if (count != 2 || PyTuple_Check(arguments[0]) == 0 || PyTuple_GET_SIZE(arguments[0]) != 9) {
      raise(ErrorClass::kType,
            "_restore_storage() takes parameters and elements; it is for unpickling alone");
    }
    const auto parameter = [&](Py_ssize_t i) { return PyTuple_GET_ITEM(arguments[0], i); };
    const StorageKeywords keywords{.shared = {.device = parameter(7),
                                              .layout = parameter(4),
                                              .alignment_size = parameter(5),
                                              .aligned_index = parameter(3),
                                              .dims = parameter(0),
                                              .halo = parameter(2)},
                                   .managed = parameter(8)};
    py::object made =
        allocate_storage(resolve_storage(parameter(1), parameter(6), keywords));
    const StorageObject& object = *object_of(made.ptr());
    // NumPy checks the length; a wrong one is its ValueError.
    const py::object numpy = steal(PyImport_ImportModule("numpy"));
    const py::object flat = steal(PyObject_CallMethod(numpy.ptr(), "frombuffer", "OO", arguments[1],
                                                      object.dtype->numpy.ptr()));
    const py::object shape = from_integers(object.storage.shape().span());
    assign_by_position(
        object, steal(PyObject_CallMethod(flat.ptr(), "reshape", "(O)", shape.ptr())).ptr());
    return made;
  });
}

}  // namespace gridbuf::python::storages
