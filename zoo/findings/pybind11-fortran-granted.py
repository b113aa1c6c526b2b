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
# severity = "values"
# expected = """\
# Memory in C order refuses PyBUF_F_CONTIGUOUS with BufferError. A consumer that is granted the \
# request may read element [1, 0] at the second place."""
# impact = "A consumer that asked for Fortran order reads another element."
# fix = """\
# In the getbuffer function for def_buffer, test the contiguity that the flags ask for. 3.0.0 does \
# it."""
# status = "fixed"
# fixed_in = "3.0.0"
# tracker = "https://github.com/pybind/pybind11/pull/5407"
#
# [tool.gridbuf-finding.releases]
# date = "2026-11-30"
# "does not run" = ["1.0", "2.6.1", "2.9.0", "2.9.1"]
# gone = ["3.0.0", "3.0.1", "3.0.2", "3.0.4", "3.1.0"]
# listed = 55
# package = "pybind11"
# python = "3.13"
# series = 7
# shown = ["2.9.2", "2.10.0", "2.10.4", "2.11.2", "2.12.1", "2.13.6"]
#
# [tool.gridbuf-finding.replays.affected]
# actual = "granted with strides (16, 8) for shape (2, 2)"
# expected = "F_CONTIGUOUS refused, or F-contiguous memory"
# outcome = "FAIL"
#
# [tool.gridbuf-finding.replays.passes]
# outcome = "PASS"
#
# [tool.gridbuf-finding.runs."pybind11-2.13.6"]
# date = "2026-11-26"
# exit = 1
# told = "defect: element [1, 0] is read as 1.0, not 3.0"
#
# [tool.gridbuf-finding.runs."pybind11-3.1.0"]
# date = "2026-11-26"
# exit = 0
# told = "refused: Fortran-contiguous buffer requested for discontiguous storage"
# ///
"""A class of pybind11 with def_buffer grants Fortran order for memory in C order, and leaves shape NULL"""

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

view = c.create_string_buffer(80)  # Py_buffer; it begins with the address
try:
    c.pythonapi.PyObject_GetBuffer(c.py_object(shown.Matrix()), view, 0x58)  # PyBUF_F_CONTIGUOUS
except BufferError as error:
    print("refused:", error)
    sys.exit(0)
second = c.POINTER(c.c_double).from_buffer(view)[1]  # in Fortran order this is element [1, 0]
sys.exit(f"defect: element [1, 0] is read as {second}, not 3.0" if second != 3 else 0)
