// The functions that import an array (promise `as-buffer`).

module;

#include <pybind11/pytypes.h>

#include "modules/python/support/docstrings.h"

module gridbuf.python;

namespace gridbuf::python {
namespace {

PyObject* as_numpy(PyObject*, PyObject* object) {
  return guarded([&] {
    if (is_exact_ndarray(object)) {
      PyObject* const base = fields_of(object).base;
      const bool is_own = base != nullptr && is_buffer(base);  // A view would lose its parameters.
      return is_own ? share(object) : with_meaningful_strides(object);
    }
    const py::object buffer =
        import_buffer(object, nullptr, {.use_names = false, .side = DeviceType::kHost});
    return ndarray_of(buffer.ptr());
  });
}

PyObject* as_buffer(PyObject*, PyObject* const* arguments, Py_ssize_t count, PyObject* names) {
  return guarded([&] {
    // The short call: as_buffer(array).
    if (count == 1 && names == nullptr) return import_buffer(arguments[0], nullptr, {});
    static constexpr const char* kNames[] = {"obj", "dims"};
    static constexpr Signature kSignature{"as_buffer", kNames, 1};
    PyObject* values[2] = {};
    sort_arguments(kSignature, arguments, count, names, values, unexpected_keyword);
    if (values[0] == nullptr) {
      raise(ErrorClass::kType, "as_buffer() needs obj; pass it as the first argument");
    }
    return import_buffer(values[0], values[1], {});
  });
}

PyMethodDef functions[] = {
    {"as_numpy", as_numpy, METH_O, doc("as_numpy")},
    {"as_buffer", method(as_buffer), METH_FASTCALL | METH_KEYWORDS, doc("as_buffer")},
    {nullptr, nullptr, 0, nullptr},
};

}  // namespace

void add_import_functions(PyObject* module) { check(PyModule_AddFunctions(module, functions)); }

}  // namespace gridbuf::python
