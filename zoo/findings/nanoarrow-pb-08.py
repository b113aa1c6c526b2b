# /// script
# requires-python = "==3.12.*"
# dependencies = ["nanoarrow==0.9.0", "numpy==2.5.5"]
#
# [tool.gridbuf-finding]
# library = "nanoarrow"
# side = "producer"
# target = "nanoarrow"
# rule = "PB-08"
# also_rules = ["PB-09"]
# plan = '{"readonly":true}'
# passes = "numpy-2.5.5"
# passes_target = "numpy"
# severity = "form"
# expected = "shape is NULL without PyBUF_ND, and strides without PyBUF_STRIDES."
# impact = """\
# A consumer that takes filled fields for granted ones sees another answer than it asked for. The \
# fields have the right values."""
# fix = """\
# In CBufferView.__getbuffer__, which nanoarrow.c_buffer objects use, fill shape and strides only \
# if the flags ask for them."""
# status = "new"
# searched = """\
# 2026-11-23, threads on GitHub: nanoarrow CBufferView __getbuffer__ flags shape strides \
# PyBUF_SIMPLE"""
#
# [tool.gridbuf-finding.releases]
# date = "2026-11-24"
# "does not run" = ["0.4.0"]
# package = "nanoarrow"
# python = "3.12"
# listed = 6
# shown = ["0.5.0", "0.6.0", "0.9.0"]
#
# [tool.gridbuf-finding.replays.affected]
# actual = "not NULL for SIMPLE"
# expected = "shape NULL below ND"
# outcome = "FAIL"
#
# [tool.gridbuf-finding.replays.passes]
# outcome = "PASS"
#
# [tool.gridbuf-finding.runs."nanoarrow-0.9.0"]
# date = "2026-11-25"
# exit = 1
# told = "defect: shape and strides are filled"
# ///
"""CBufferView of nanoarrow fills shape and strides for a request of plain bytes"""

import ctypes as c
import sys

import nanoarrow


class View(c.Structure):  # Py_buffer
    _fields_ = [(name, c.c_ssize_t) for name in ("buf", "obj", "len", "itemsize")]
    _fields_ += [("readonly", c.c_int), ("ndim", c.c_int), ("format", c.c_char_p)]
    _fields_ += [(name, c.POINTER(c.c_ssize_t)) for name in ("shape", "strides", "suboffsets")]
    _fields_ += [("internal", c.c_void_p)]


def ask(exporter, flags):
    view = View()
    c.pythonapi.PyObject_GetBuffer(c.py_object(exporter), c.byref(view), flags)
    return view


exporter = nanoarrow.c_buffer(b"abcdefgh")
view = ask(exporter, 0)  # PyBUF_SIMPLE
sys.exit("defect: shape and strides are filled" if view.shape or view.strides else 0)
