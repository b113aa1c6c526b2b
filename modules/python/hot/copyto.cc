// `gridbuf.copyto` of two ndarrays, the usual case (promise `copyto-tiny`).

module;

#include <Python.h>

#include <string>

#include "modules/python/support/docstrings.h"

module gridbuf.python;

namespace gridbuf::python {
namespace {

PyObject* copyto(PyObject*, PyObject* const* arguments, Py_ssize_t count, PyObject* names) {
  return guarded([&] {
    static constexpr const char* kNames[] = {"dst", "src", "casting", "where"};
    static constexpr Signature kSignature{"copyto", kNames, 4};
    PyObject* values[4] = {};
    if (count == 2 && names == nullptr) {
      values[0] = arguments[0];
      values[1] = arguments[1];
    } else {
      sort_arguments(kSignature, arguments, count, names, values, unexpected_keyword);
    }
    for (const int i : {0, 1}) {
      if (values[i] != nullptr) continue;
      raise(ErrorClass::kType,
            std::string("copyto() needs ") + kNames[i] +
                "; call it as copyto(dst, src, casting=\"same_kind\", where=True)");
    }
    PyObject* casting = to_casting(values[2]);
    if (casting == nullptr) casting = same_kind_casting();
    PyObject* const where = values[3] == Py_True ? nullptr : values[3];
    if (where == nullptr && is_exact_ndarray(values[0]) && is_exact_ndarray(values[1])) {
      copy_arrays(values[0], values[1], {.casting = casting});
    } else {
      storages::copy_values({values[0], values[1], casting, where});
    }
    return share(Py_None);
  });
}

PyMethodDef functions[] = {
    {"copyto", method(copyto), METH_FASTCALL | METH_KEYWORDS, doc("copyto")},
    {nullptr, nullptr, 0, nullptr},
};

}  // namespace

void add_copyto_function(PyObject* module) { check(PyModule_AddFunctions(module, functions)); }

}  // namespace gridbuf::python
