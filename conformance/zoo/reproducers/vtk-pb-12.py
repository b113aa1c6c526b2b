"""vtkDoubleArray grants a request for Fortran order, with memory in C order."""

import ctypes as c
import sys

import vtk


class View(c.Structure):  # Py_buffer
    _fields_ = [(name, c.c_ssize_t) for name in ("buf", "obj", "len", "itemsize")]
    _fields_ += [("readonly", c.c_int), ("ndim", c.c_int), ("format", c.c_char_p)]
    _fields_ += [(name, c.POINTER(c.c_ssize_t)) for name in ("shape", "strides", "suboffsets")]
    _fields_ += [("internal", c.c_void_p)]


def ask(exporter, flags):
    view = View()
    c.pythonapi.PyObject_GetBuffer(c.py_object(exporter), c.byref(view), flags)
    return view


exporter = vtk.vtkDoubleArray()
exporter.SetNumberOfComponents(3)
exporter.SetNumberOfTuples(2)
try:
    view = ask(exporter, 0x58)  # PyBUF_F_CONTIGUOUS
except (BufferError, ValueError) as error:
    print("refused:", error)
    sys.exit(0)
strides = view.strides and view.strides[: view.ndim]
sys.exit(f"defect: granted with strides {strides or None} for shape (2, 3)")
