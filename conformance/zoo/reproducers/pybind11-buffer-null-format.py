"""py::buffer::request of pybind11 fails for a buffer whose format is NULL."""

import subprocess
import sys
import sysconfig

import pybind11

CODE = """#include <pybind11/pybind11.h>
namespace py = pybind11;
static char byte;
static int get(PyObject* self, Py_buffer* view, int flags) {
  int code = PyBuffer_FillInfo(view, self, &byte, 1, 0, flags);
  view->format = nullptr;  // NULL means "B"
  return code;
}
static PyType_Slot slots[] = {{Py_bf_getbuffer, (void*)get}, {0, nullptr}};
static PyType_Spec spec = {"shown.Byte", sizeof(PyObject), 0, Py_TPFLAGS_DEFAULT, slots};
PYBIND11_MODULE(shown, m) {
  m.attr("Byte") = py::reinterpret_steal<py::object>(PyType_FromSpec(&spec));
  m.def("request", [](py::buffer buffer) { return buffer.request().size; });
}"""
paths = [f"-I{path}" for path in (pybind11.get_include(), sysconfig.get_path("include"))]
compiler = ["c++", "-shared", "-fPIC", "-std=c++17", "-o", "shown.so", *paths, "-xc++", "-"]
subprocess.run(compiler, input=CODE, text=True, check=True)
sys.path.insert(0, ".")
import shown

print("memoryview:", memoryview(shown.Byte()).format)
try:
    shown.request(shown.Byte())
except RuntimeError as error:
    sys.exit(f"defect: RuntimeError: {error}")
