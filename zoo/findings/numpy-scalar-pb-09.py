# /// script
# requires-python = "==3.13.*"
# dependencies = ["numpy==2.5.5"]
#
# [tool.gridbuf-finding]
# library = "NumPy"
# side = "producer"
# target = "numpy.scalar"
# rule = "PB-09"
# also_rules = ["PB-08"]
# plan = '{"shape":[],"dtype":"datetime64[ns]","readonly":true}'
# passes = "numpy-2.5.5"
# passes_target = "numpy"
# severity = "form"
# expected = "shape is NULL without PyBUF_ND, and strides is filled with PyBUF_STRIDES."
# impact = """\
# A consumer that asked for strides gets NULL for an object of one dimension. The script shows the \
# fields, not a wrong read."""
# fix = """\
# In the getbuffer function of numpy.datetime64 scalars, fill shape and strides by the flags of \
# the request."""
# status = "new"
# searched = """\
# 2026-11-23, threads on GitHub: numpy datetime64 scalar buffer protocol gentype getbuffer \
# strides NULL shape SIMPLE"""
#
# [tool.gridbuf-finding.releases]
# date = "2026-11-24"
# "does not run" = ["1.3.0", "1.19.2", "1.26.4", "2.0.1", "2.0.2"]
# package = "numpy"
# python = "3.13"
# listed = 127
# shown = ["2.1.0", "2.2.0", "2.3.1", "2.5.5"]
#
# [tool.gridbuf-finding.replays.affected]
# actual = "NULL for STRIDES"
# expected = "strides with 1 entries"
# outcome = "FAIL"
#
# [tool.gridbuf-finding.replays.passes]
# outcome = "PASS"
#
# [tool.gridbuf-finding.runs."numpy-2.5.5"]
# date = "2026-11-25"
# exit = 1
# told = "defect: shape is filled, or strides is NULL"
# ///
"""A datetime64 scalar of NumPy fills shape for a request of plain bytes, and never strides"""

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


exporter = np.datetime64(1, "ns")
plain, full = ask(exporter, 0), ask(exporter, 0x18)  # PyBUF_SIMPLE, PyBUF_STRIDES
sys.exit("defect: shape is filled, or strides is NULL" if plain.shape or not full.strides else 0)
