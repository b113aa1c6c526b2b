# /// script
# requires-python = "==3.13.*"
# dependencies = ["pybind11==2.13.6", "setuptools==80.9.0", "numpy==2.5.5"]
#
# [tool.gridbuf-finding]
# library = "pybind11"
# side = "producer"
# target = "zoo/producers.py:Pybind11Producer"
# rule = "PB-12"
# also_rules = ["PB-02", "PB-08"]
# plan = '{"shape":[2,2]}'
# passes = "pybind11-3.1.0"
# why = """\
# The flags of a request say which fields to fill and which memory to grant (buffer protocol, \
# request types). Contiguity was not checked, and shape was filled from PyBUF_STRIDES on."""
# seen = """\
# PyObject_GetBuffer(a class with def_buffer over shape (2, 3), PyBUF_F_CONTIGUOUS): granted in \
# 2.13.6, BufferError in 3.1.0."""
# status = "fixed"
# fixed_in = "3.1.0"
# tracker = "https://github.com/pybind/pybind11/pull/5407"
# ///
"""A class of pybind11 with def_buffer grants Fortran order for memory in C order, and leaves shape NULL."""

import ctypes as c
import subprocess
import sys
import sysconfig

import pybind11

CODE = """#include <pybind11/pybind11.h>
namespace py = pybind11;
struct Matrix { double data[6] = {0, 1, 2, 3, 4, 5}; };
PYBIND11_MODULE(shown, m) {
  py::class_<Matrix>(m, "Matrix", py::buffer_protocol()).def(py::init<>())
    .def_buffer([](Matrix& x) { return py::buffer_info(x.data, {2, 3}, {24, 8}); });
}"""
paths = [f"-I{path}" for path in (pybind11.get_include(), sysconfig.get_path("include"))]
compiler = ["c++", "-shared", "-fPIC", "-std=c++17", "-o", "shown.so", *paths, "-xc++", "-"]
subprocess.run(compiler, input=CODE, text=True, check=True)
sys.path.insert(0, ".")
import shown

view = c.create_string_buffer(80)  # Py_buffer; its strides are at byte 56
try:
    c.pythonapi.PyObject_GetBuffer(c.py_object(shown.Matrix()), view, 0x58)  # PyBUF_F_CONTIGUOUS
except BufferError as error:
    print("refused:", error)
    sys.exit(0)
strides = c.POINTER(c.c_ssize_t).from_buffer(view, 56)[:2]
sys.exit(f"defect: granted with strides {strides} for shape (2, 3)")
