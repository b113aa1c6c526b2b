"""pyarrow.Buffer fills format, shape and strides for a request of plain bytes."""

import ctypes as c
import sys

import pyarrow


class View(c.Structure):  # Py_buffer
    _fields_ = [(name, c.c_ssize_t) for name in ("buf", "obj", "len", "itemsize")]
    _fields_ += [("readonly", c.c_int), ("ndim", c.c_int), ("format", c.c_char_p)]
    _fields_ += [(name, c.POINTER(c.c_ssize_t)) for name in ("shape", "strides", "suboffsets")]
    _fields_ += [("internal", c.c_void_p)]


def ask(exporter, flags):
    view = View()
    c.pythonapi.PyObject_GetBuffer(c.py_object(exporter), c.byref(view), flags)
    return view


exporter = pyarrow.py_buffer(b"abcdefgh")
view = ask(exporter, 0)  # PyBUF_SIMPLE
sys.exit(
    "defect: format, shape or strides are filled"
    if view.format or view.shape or view.strides
    else 0
)
