"""zmq.Frame fills format and shape whatever was requested, and never strides."""

import ctypes as c
import sys

import zmq


class View(c.Structure):  # Py_buffer
    _fields_ = [(name, c.c_ssize_t) for name in ("buf", "obj", "len", "itemsize")]
    _fields_ += [("readonly", c.c_int), ("ndim", c.c_int), ("format", c.c_char_p)]
    _fields_ += [(name, c.POINTER(c.c_ssize_t)) for name in ("shape", "strides", "suboffsets")]
    _fields_ += [("internal", c.c_void_p)]


def ask(exporter, flags):
    view = View()
    c.pythonapi.PyObject_GetBuffer(c.py_object(exporter), c.byref(view), flags)
    return view


exporter = zmq.Frame(b"abcdefgh")
view = ask(exporter, 0)  # PyBUF_SIMPLE
sys.exit("defect: format or shape are filled" if view.format or view.shape else 0)
