# /// script
# requires-python = "==3.12.*"
# dependencies = ["PyGLM==2.8.3"]
#
# [tool.gridbuf-finding]
# library = "PyGLM"
# side = "producer"
# target = "glm"
# rule = "PB-11"
# plan = '{"shape":[2,2]}'
# severity = "values"
# expected = """\
# A column-major matrix refuses PyBUF_ND with BufferError. Without strides a consumer reads \
# element [0, 1] at the second place."""
# impact = "A consumer reads the transposed matrix, without an error."
# fix = """\
# In the getbuffer function of mat2x3 and the other matrices, raise BufferError for PyBUF_ND \
# without PyBUF_STRIDES."""
# status = "new"
# searched = """\
# 2026-11-23, threads on GitHub: PyGLM glm.array buffer protocol crash F_CONTIGUOUS wrong \
# strides memoryview"""
#
# [tool.gridbuf-finding.releases]
# date = "2026-11-24"
# "does not run" = ["1.0.0", "2.3.1", "2.5.7", "2.7.0"]
# package = "PyGLM"
# python = "3.12"
# listed = 36
# shown = ["2.7.1", "2.7.2", "2.7.3", "2.8.0", "2.8.3"]
#
# [tool.gridbuf-finding.replays.affected]
# actual = "SIMPLE, WRITABLE, FORMAT, ND, ND|FORMAT, CONTIG granted"
# expected = "a refusal, for strides (8, 16) of shape (2, 2) are not C-contiguous"
# outcome = "FAIL"
#
# [tool.gridbuf-finding.runs."pyglm-2.8.3"]
# date = "2026-11-25"
# exit = 1
# told = "defect: element [0, 1] of [3, 2] is 1.0, not 3.0"
# ///
"""A matrix of PyGLM, which is column-major, grants a request without strides: the consumer reads it transposed"""

import ctypes as c
import sys

import glm


class View(c.Structure):  # Py_buffer
    _fields_ = [(name, c.c_ssize_t) for name in ("buf", "obj", "len", "itemsize")]
    _fields_ += [("readonly", c.c_int), ("ndim", c.c_int), ("format", c.c_char_p)]
    _fields_ += [(name, c.POINTER(c.c_ssize_t)) for name in ("shape", "strides", "suboffsets")]
    _fields_ += [("internal", c.c_void_p)]


def ask(exporter, flags):
    view = View()
    c.pythonapi.PyObject_GetBuffer(c.py_object(exporter), c.byref(view), flags)
    return view


matrix = glm.mat2x3(0, 1, 2, 3, 4, 5)
try:
    view = ask(matrix, 0x8)  # PyBUF_ND: shape, no strides, so C order
except (BufferError, ValueError) as error:
    print("refused:", error)
    sys.exit(0)
shape = view.shape[: view.ndim]
wanted = memoryview(matrix)[0, 1]
second = c.c_float.from_address(view.buf + view.itemsize).value  # element [0, 1] of this shape
sys.exit(f"defect: element [0, 1] of {shape} is {second}, not {wanted}" if second != wanted else 0)
