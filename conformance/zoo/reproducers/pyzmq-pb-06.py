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
# why = """\
# The flags of a request say which fields to fill and which memory to grant (buffer protocol, \
# request types). A request without FORMAT must get format NULL, one without ND shape NULL, and \
# one with STRIDES its strides."""
# seen = "SIMPLE gets format 'B' and shape [8]."
# status = "new"
# searched = """\
# 2026-11-23, threads on GitHub: pyzmq Frame buffer readonly writable copy=False bytes mutated; \
# Frame releases buffer view"""
# ///
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
