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
# severity = "values"
# expected = """\
# An array in C order refuses PyBUF_F_CONTIGUOUS with BufferError. A consumer that is granted the \
# request may read element [1, 0] at the second place."""
# impact = "A consumer that asked for Fortran order reads another element."
# fix = """\
# In the getbuffer function of vtkDoubleArray and the other arrays, raise BufferError for \
# PyBUF_F_CONTIGUOUS if there are several components and tuples."""
# status = "new"
# searched = """\
# 2026-11-23, threads on GitHub, not gitlab.kitware.com: VTK python buffer protocol vtkDataArray \
# getbuffer F_CONTIGUOUS strides vtkSOADataArrayTemplate copy"""
#
# [tool.gridbuf-finding.releases]
# date = "2026-11-26"
# package = "vtk"
# python = "3.12"
# listed = 14
# shown = ["9.3.0", "9.7.2"]
#
# [tool.gridbuf-finding.replays.affected]
# actual = "granted with strides (16, 8) for shape (2, 2)"
# expected = "F_CONTIGUOUS refused, or F-contiguous memory"
# outcome = "FAIL"
#
# [tool.gridbuf-finding.replays.passes]
# outcome = "PASS"
#
# [tool.gridbuf-finding.runs."vtk-9.7.2"]
# date = "2026-11-26"
# exit = 1
# told = "defect: element [1, 0] is read as 1.0, not 3.0"
# ///
"""vtkDoubleArray of VTK grants a request for Fortran order, with memory in C order"""

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
for number in range(6):
    exporter.SetValue(number, number)
try:
    view = ask(exporter, 0x58)  # PyBUF_F_CONTIGUOUS
except (BufferError, ValueError) as error:
    print("refused:", error)
    sys.exit(0)
second = (c.c_double * 6).from_address(view.buf)[1]  # in Fortran order this is element [1, 0]
sys.exit(f"defect: element [1, 0] is read as {second}, not 3.0" if second != 3 else 0)
