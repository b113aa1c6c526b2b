# /// script
# requires-python = "==3.13.*"
# dependencies = ["numpy==2.5.5"]
#
# [tool.gridbuf-finding]
# library = "NumPy"
# side = "producer"
# target = "numpy"
# also_targets = ["numpy.field", "numpy.memmap", "numpy.references"]
# rule = "PB-01"
# plan = '{"readonly":true}'
# also_affected = ["numpy-1.22.0", "numpy-1.26.4", "numpy-2.2.6"]
# passes = "cpython-3.13.0"
# passes_target = "memoryview"
# severity = "form"
# expected = "A request that cannot be met raises BufferError."
# impact = """\
# A consumer that expects BufferError, and has another way for such arrays, does not catch the \
# ValueError."""
# fix = """\
# In the getbuffer function of numpy.ndarray, raise BufferError where ValueError is raised \
# (array_getbuffer, flags such as PyBUF_WRITABLE)."""
# status = "acknowledged"
# tracker = "https://github.com/numpy/numpy/issues/3634"
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
# actual = "ValueError for WRITABLE, CONTIG, STRIDED, RECORDS, C_CONTIGUOUS|WRITABLE, F_CONTIGUOUS|WRITABLE, FULL"
# expected = "BufferError for a request that cannot be met"
# outcome = "FAIL"
#
# [tool.gridbuf-finding.replays.passes]
# outcome = "PASS"
#
# [tool.gridbuf-finding.runs."numpy-1.22.0"]
# date = "2026-11-25"
# exit = 1
# told = "defect: ValueError: buffer source array is read-only"
#
# [tool.gridbuf-finding.runs."numpy-1.26.4"]
# date = "2026-11-25"
# exit = 1
# told = "defect: ValueError: buffer source array is read-only"
#
# [tool.gridbuf-finding.runs."numpy-2.2.6"]
# date = "2026-11-25"
# exit = 1
# told = "defect: ValueError: buffer source array is read-only"
#
# [tool.gridbuf-finding.runs."numpy-2.5.5"]
# date = "2026-11-25"
# exit = 1
# told = "defect: ValueError: buffer source array is read-only"
# ///
"""A NumPy array refuses a buffer request with ValueError"""

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


array = np.zeros(2)
array.flags.writeable = False
try:
    ask(array, 1)  # PyBUF_WRITABLE
except BufferError as error:
    print("refused:", error)
except ValueError as error:
    sys.exit(f"defect: ValueError: {error}")
