# /// script
# requires-python = "==3.12.*"
# dependencies = ["usd-core==26.11", "numpy==2.5.5"]
#
# [tool.gridbuf-finding]
# library = "OpenUSD"
# side = "producer"
# target = "usd"
# rule = "PB-01"
# plan = '{"readonly":true}'
# passes = "cpython-3.13.0"
# passes_target = "memoryview"
# severity = "form"
# expected = "A request that cannot be met raises BufferError."
# impact = """\
# A consumer that expects BufferError, and has another way for such arrays, does not catch the \
# ValueError."""
# fix = """\
# In the getbuffer function of Vt arrays such as Vt.FloatArray, raise BufferError where ValueError \
# is raised."""
# status = "new"
# searched = """\
# 2026-11-23, threads on GitHub: OpenUSD Vt array python buffer protocol ValueError BufferError; \
# cramjam empty buffer NULL"""
#
# [tool.gridbuf-finding.releases]
# date = "2026-11-24"
# package = "usd-core"
# python = "3.12"
# listed = 12
# shown = ["24.8", "26.11"]
#
# [tool.gridbuf-finding.replays.affected]
# actual = "ValueError for WRITABLE, CONTIG, STRIDED, RECORDS, F_CONTIGUOUS, C_CONTIGUOUS|WRITABLE, F_CONTIGUOUS|WRITABLE, FULL"
# expected = "BufferError for a request that cannot be met"
# outcome = "FAIL"
#
# [tool.gridbuf-finding.replays.passes]
# outcome = "PASS"
#
# [tool.gridbuf-finding.runs."usd-core-26.11"]
# date = "2026-11-25"
# exit = 1
# told = "defect: ValueError: writable buffers unsupported"
# ///
"""An array of OpenUSD refuses a buffer request with ValueError"""

import ctypes as c
import sys

from pxr import Vt


class View(c.Structure):  # Py_buffer
    _fields_ = [(name, c.c_ssize_t) for name in ("buf", "obj", "len", "itemsize")]
    _fields_ += [("readonly", c.c_int), ("ndim", c.c_int), ("format", c.c_char_p)]
    _fields_ += [(name, c.POINTER(c.c_ssize_t)) for name in ("shape", "strides", "suboffsets")]
    _fields_ += [("internal", c.c_void_p)]


def ask(exporter, flags):
    view = View()
    c.pythonapi.PyObject_GetBuffer(c.py_object(exporter), c.byref(view), flags)
    return view


try:
    ask(Vt.FloatArray(3), 1)  # PyBUF_WRITABLE
except BufferError as error:
    print("refused:", error)
except ValueError as error:
    sys.exit(f"defect: ValueError: {error}")
