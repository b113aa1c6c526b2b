# /// script
# requires-python = "==3.12.*"
# dependencies = ["pyzmq==27.3.0"]
#
# [tool.gridbuf-finding]
# library = "pyzmq"
# side = "producer"
# target = "pyzmq"
# rule = "PB-06"
# also_rules = ["PB-08", "PB-09"]
# plan = '{"dtype":"uint8"}'
# passes = "numpy-2.5.5"
# passes_target = "numpy"
# severity = "form"
# expected = "format is NULL without PyBUF_FORMAT, and shape without PyBUF_ND."
# impact = """\
# A consumer that takes filled fields for granted ones sees another answer than it asked for. The \
# fields have the right values."""
# fix = """\
# In the getbuffer function of zmq.Frame, fill each field only if the flags ask for it \
# (PyBuffer_FillInfo does that)."""
# status = "new"
# searched = """\
# 2026-11-23, threads on GitHub: pyzmq Frame buffer readonly writable copy=False bytes mutated; \
# Frame releases buffer view"""
#
# [tool.gridbuf-finding.releases]
# date = "2026-11-24"
# "does not run" = ["2.0.7", "18.0.2", "24.0.0", "25.1.0"]
# package = "pyzmq"
# python = "3.12"
# listed = 91
# shown = ["25.1.1", "26.0.0", "26.0.3", "27.3.0"]
#
# [tool.gridbuf-finding.replays.affected]
# actual = "'B' for SIMPLE, WRITABLE, ND, CONTIG, STRIDES, STRIDED, C_CONTIGUOUS, F_CONTIGUOUS, ANY_CONTIGUOUS, C_CONTIGUOUS|WRITABLE, F_CONTIGUOUS|WRITABLE, INDIRECT"
# expected = "format NULL without FORMAT"
# outcome = "FAIL"
#
# [tool.gridbuf-finding.replays.passes]
# outcome = "PASS"
#
# [tool.gridbuf-finding.runs."pyzmq-27.3.0"]
# date = "2026-11-25"
# exit = 1
# told = "defect: format or shape are filled"
# ///
"""zmq.Frame fills format and shape whatever was requested, and never strides"""

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
