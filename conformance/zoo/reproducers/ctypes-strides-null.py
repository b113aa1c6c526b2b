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
# why = """\
# The table of request types says that PyBUF_STRIDES fills strides, contiguous or not; ctypes \
# never fills them."""
# seen = "PyObject_GetBuffer(c_double * 1, PyBUF_STRIDES): strides is NULL."
# status = "acknowledged"
# tracker = "https://github.com/python/cpython/issues/57060"
# ///
"""ctypes leaves strides NULL although PyBUF_STRIDES asks for them."""

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
