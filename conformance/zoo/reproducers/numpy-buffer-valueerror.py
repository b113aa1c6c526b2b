"""A NumPy array refuses a buffer request with ValueError."""

import ctypes as c
import sys

import numpy as np


class View(c.Structure):  # Py_buffer
    _fields_ = [(name, c.c_ssize_t) for name in ("buf", "obj", "len", "itemsize")]
    _fields_ += [("readonly", c.c_int), ("ndim", c.c_int), ("format", c.c_char_p)]
    _fields_ += [(name, c.POINTER(c.c_ssize_t)) for name in ("shape", "strides", "suboffsets")]
    _fields_ += [("internal", c.c_void_p)]


def ask(exporter, flags):
    view = View()
    c.pythonapi.PyObject_GetBuffer(c.py_object(exporter), c.byref(view), flags)
    return view


array = np.zeros(2)
array.flags.writeable = False
try:
    ask(array, 1)  # PyBUF_WRITABLE
except BufferError as error:
    print("refused:", error)
except ValueError as error:
    sys.exit(f"defect: ValueError: {error}")
