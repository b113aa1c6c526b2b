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
