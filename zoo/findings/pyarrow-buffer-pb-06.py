# /// script
# requires-python = "==3.13.*"
# dependencies = ["pyarrow==26.0.1", "numpy==2.5.5"]
#
# [tool.gridbuf-finding]
# library = "PyArrow"
# side = "producer"
# target = "pyarrow.buffer"
# rule = "PB-06"
# also_rules = ["PB-08", "PB-09"]
# plan = '{"dtype":"int8"}'
# passes = "numpy-2.5.5"
# passes_target = "numpy"
# severity = "form"
# expected = """\
# format is NULL without PyBUF_FORMAT, shape without PyBUF_ND, and strides without PyBUF_STRIDES."""
# impact = """\
# A consumer that takes filled fields for granted ones sees another answer than it asked for. The \
# fields have the right values."""
# fix = """\
# In Buffer.__getbuffer__, which objects of pyarrow.py_buffer use, fill each field only if the \
# flags ask for it."""
# status = "new"
# searched = """\
# 2026-11-23, threads on GitHub: pyarrow Tensor buffer protocol __getbuffer__ ignores flags \
# column-major Fortran PyBUF_SIMPLE"""
#
# [tool.gridbuf-finding.releases]
# date = "2026-11-24"
# "does not run" = ["0.9.0", "11.0.0", "14.0.2", "15.0.2", "16.1.0", "17.0.0"]
# package = "pyarrow"
# python = "3.13"
# listed = 53
# shown = ["18.0.0", "22.0.0", "24.0.0", "25.0.1", "26.0.0", "26.0.1"]
#
# [tool.gridbuf-finding.replays.affected]
# actual = "'b' for SIMPLE, WRITABLE, ND, CONTIG, STRIDES, STRIDED, C_CONTIGUOUS, F_CONTIGUOUS, ANY_CONTIGUOUS, C_CONTIGUOUS|WRITABLE, F_CONTIGUOUS|WRITABLE, INDIRECT"
# expected = "format NULL without FORMAT"
# outcome = "FAIL"
#
# [tool.gridbuf-finding.replays.passes]
# outcome = "PASS"
#
# [tool.gridbuf-finding.runs."pyarrow-26.0.1"]
# date = "2026-11-25"
# exit = 1
# told = "defect: format, shape or strides are filled"
# ///
"""pyarrow.Buffer fills format, shape and strides for a request of plain bytes"""

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
