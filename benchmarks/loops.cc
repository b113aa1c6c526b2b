// gridbuf_benchmarks._loops: hand-overs in a loop of C, as a consumer written in C makes them.
//
// One hand-over through DLPack's C exchange table takes less time than Python needs to call
// anything, so a loop in Python would measure Python. Both functions give the export back at once.

#include <Python.h>

import gridbuf.interface.dlpack;
import gridbuf.interface.exchange;

namespace {

namespace dlpack = gridbuf::dlpack;

const dlpack::ExchangeApi* table_of(PyObject* object) {
  PyObject* const capsule = PyObject_GetAttrString(reinterpret_cast<PyObject*>(Py_TYPE(object)),
                                                   dlpack::kExchangeAttribute);
  if (capsule == nullptr) return nullptr;
  void* const header = PyCapsule_GetPointer(capsule, dlpack::kExchangeCapsuleName);
  Py_DECREF(capsule);  // The table lives as long as the process (DX-02).
  if (header == nullptr) return nullptr;
  const dlpack::ExchangeApi* const table =
      dlpack::find_exchange_api(static_cast<dlpack::ExchangeApiHeader*>(header));
  if (table == nullptr) PyErr_SetString(PyExc_BufferError, "no exchange table of version 1");
  return table;
}

/// through_table(x, count): exports x `count` times through its type's table. Returns x.
PyObject* through_table(PyObject*, PyObject* arguments) {
  PyObject* object = nullptr;
  long count = 0;
  if (PyArg_ParseTuple(arguments, "Ol", &object, &count) == 0) return nullptr;
  const dlpack::ExchangeApi* const table = table_of(object);
  if (table == nullptr) return nullptr;
  for (long i = 0; i < count; ++i) {
    dlpack::DLManagedTensorVersioned* tensor = nullptr;
    if (table->managed_tensor_from_py_object_no_sync(object, &tensor) != 0) return nullptr;
    tensor->deleter(tensor);
  }
  return Py_NewRef(object);
}

/// through_method(x, count): the same by calling x.__dlpack__(max_version=(1, 3)). Returns x.
PyObject* through_method(PyObject*, PyObject* arguments) {
  PyObject* object = nullptr;
  long count = 0;
  if (PyArg_ParseTuple(arguments, "Ol", &object, &count) == 0) return nullptr;
  PyObject* const name = PyUnicode_InternFromString("__dlpack__");
  PyObject* const version = Py_BuildValue("(ii)", 1, 3);
  PyObject* const keyword = PyUnicode_InternFromString("max_version");
  PyObject* const keywords = keyword == nullptr ? nullptr : PyTuple_Pack(1, keyword);
  bool done = name != nullptr && version != nullptr && keywords != nullptr;
  for (long i = 0; done && i < count; ++i) {
    PyObject* const given[] = {object, version};
    PyObject* const capsule =
        PyObject_VectorcallMethod(name, given, 1 | PY_VECTORCALL_ARGUMENTS_OFFSET, keywords);
    done = capsule != nullptr;
    Py_XDECREF(capsule);  // Unconsumed: gives the export back.
  }
  Py_XDECREF(name);
  Py_XDECREF(version);
  Py_XDECREF(keyword);
  Py_XDECREF(keywords);
  return done ? Py_NewRef(object) : nullptr;
}

PyMethodDef functions[] = {
    {"through_table", through_table, METH_VARARGS, "through_table(x, count) -> x"},
    {"through_method", through_method, METH_VARARGS, "through_method(x, count) -> x"},
    {nullptr, nullptr, 0, nullptr},
};

PyModuleDef definition = {
    .m_base = PyModuleDef_HEAD_INIT,
    .m_name = "gridbuf_benchmarks._loops",
    .m_doc = "Hand-overs in a loop of C.",
    .m_size = -1,
    .m_methods = functions,
    .m_slots = nullptr,
    .m_traverse = nullptr,
    .m_clear = nullptr,
    .m_free = nullptr,
};

}  // namespace

PyMODINIT_FUNC PyInit__loops() { return PyModule_Create(&definition); }
