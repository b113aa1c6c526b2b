# /// script
# requires-python = "==3.13.0"
# dependencies = []
#
# [tool.gridbuf-finding]
# library = "CPython"
# side = "producer"
# target = "ctypes"
# rule = "PB-09"
# plan = '{}'
# also_affected = ["cpython-3.10.13", "cpython-3.11.7", "cpython-3.12.1"]
# passes = "numpy-2.5.5"
# passes_target = "numpy"
# severity = "form"
# expected = "A request with PyBUF_STRIDES gets strides, also if the memory is contiguous."
# impact = """\
# A consumer in C that follows the table of request types reads a NULL pointer. The script shows \
# the NULL, not a crash."""
# fix = """\
# In PyCData_NewGetBuffer, which PyObject_GetBuffer calls, fill strides if the flags have \
# PyBUF_STRIDES."""
# status = "acknowledged"
# tracker = "https://github.com/python/cpython/issues/57060"
#
# [tool.gridbuf-finding.replays.affected]
# actual = "NULL for STRIDES"
# expected = "strides with 1 entries"
# outcome = "FAIL"
#
# [tool.gridbuf-finding.replays.passes]
# outcome = "PASS"
#
# [tool.gridbuf-finding.runs."cpython-3.10.13"]
# date = "2026-11-25"
# exit = 1
# told = "defect: strides is NULL"
#
# [tool.gridbuf-finding.runs."cpython-3.11.7"]
# date = "2026-11-25"
# exit = 1
# told = "defect: strides is NULL"
#
# [tool.gridbuf-finding.runs."cpython-3.12.1"]
# date = "2026-11-25"
# exit = 1
# told = "defect: strides is NULL"
#
# [tool.gridbuf-finding.runs."cpython-3.13.0"]
# date = "2026-11-25"
# exit = 1
# told = "defect: strides is NULL"
# ///
"""ctypes leaves strides NULL although PyBUF_STRIDES asks for them"""

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


view = ask((c.c_double * 2)(), 0x18)  # PyBUF_STRIDES
sys.exit("defect: strides is NULL" if not view.strides else 0)
