# /// script
# requires-python = "==3.12.*"
# dependencies = ["vtk==9.7.2", "numpy==2.5.5"]
#
# [tool.gridbuf-finding]
# library = "VTK"
# side = "producer"
# target = "vtk"
# rule = "PB-12"
# also_rules = ["PB-06", "PB-09"]
# plan = '{"shape":[2,2]}'
# passes = "numpy-2.5.5"
# passes_target = "numpy"
# why = """\
# The flags of a request say which fields to fill and which memory to grant (buffer protocol, \
# request types). From PyBUF_ND up everything is filled and granted."""
# seen = "F: strides [24, 8] of shape [2, 3]."
# status = "new"
# searched = """\
# 2026-11-23, threads on GitHub, not gitlab.kitware.com: VTK python buffer protocol vtkDataArray \
# getbuffer F_CONTIGUOUS strides vtkSOADataArrayTemplate copy"""
# ///
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
