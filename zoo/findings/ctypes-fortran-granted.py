# /// script
# requires-python = "==3.13.0"
# dependencies = []
#
# [tool.gridbuf-finding]
# library = "CPython"
# side = "producer"
# target = "ctypes"
# rule = "PB-12"
# also_rules = ["PB-06", "PB-08"]
# plan = '{"shape":[2,2]}'
# also_affected = ["cpython-3.10.13", "cpython-3.11.7", "cpython-3.12.1"]
# passes = "numpy-2.5.5"
# passes_target = "numpy"
# severity = "values"
# expected = """\
# An array in C order refuses PyBUF_F_CONTIGUOUS with BufferError. A consumer that is granted the \
# request may read element [1, 0] at the second place."""
# impact = "A consumer that asked for Fortran order reads another element."
# fix = """\
# In PyCData_NewGetBuffer, which PyObject_GetBuffer calls, raise BufferError for \
# PyBUF_F_CONTIGUOUS if the array has two or more dimensions."""
# status = "new"
# searched = """\
# 2026-11-23, threads on GitHub: PyCData_NewGetBuffer ignores flags format shape PyBUF_SIMPLE \
# PyBUF_F_CONTIGUOUS"""
#
# [tool.gridbuf-finding.replays.affected]
# actual = "granted with strides (16, 8) for shape (2, 2)"
# expected = "F_CONTIGUOUS refused, or F-contiguous memory"
# outcome = "FAIL"
#
# [tool.gridbuf-finding.replays.passes]
# outcome = "PASS"
#
# [tool.gridbuf-finding.runs."cpython-3.10.13"]
# date = "2026-11-25"
# exit = 1
# told = "defect: element [1, 0] is read as 1.0, not 3.0"
#
# [tool.gridbuf-finding.runs."cpython-3.11.7"]
# date = "2026-11-25"
# exit = 1
# told = "defect: element [1, 0] is read as 1.0, not 3.0"
#
# [tool.gridbuf-finding.runs."cpython-3.12.1"]
# date = "2026-11-25"
# exit = 1
# told = "defect: element [1, 0] is read as 1.0, not 3.0"
#
# [tool.gridbuf-finding.runs."cpython-3.13.0"]
# date = "2026-11-25"
# exit = 1
# told = "defect: element [1, 0] is read as 1.0, not 3.0"
# ///
"""An array of ctypes grants a request for Fortran order, with memory in C order"""

import ctypes as c
import sys


class View(c.Structure):  # Py_buffer
    _fields_ = [(name, c.c_ssize_t) for name in ("buf", "obj", "len", "itemsize")]
    _fields_ += [("readonly", c.c_int), ("ndim", c.c_int), ("format", c.c_char_p)]
    _fields_ += [(name, c.POINTER(c.c_ssize_t)) for name in ("shape", "strides", "suboffsets")]
    _fields_ += [("internal", c.c_void_p)]


def ask(exporter, flags):
    view = View()
    c.pythonapi.PyObject_GetBuffer(c.py_object(exporter), c.byref(view), flags)
    return view


exporter = ((c.c_double * 3) * 2)((0, 1, 2), (3, 4, 5))
try:
    view = ask(exporter, 0x58)  # PyBUF_F_CONTIGUOUS
except BufferError as error:
    print("refused:", error)
    sys.exit(0)
second = (c.c_double * 6).from_address(view.buf)[1]  # in Fortran order this is element [1, 0]
sys.exit(f"defect: element [1, 0] is read as {second}, not 3.0" if second != 3 else 0)
