# /// script
# requires-python = "==3.12.*"
# dependencies = ["cvxopt==1.3.3", "numpy==2.4.6"]
#
# [tool.gridbuf-finding]
# library = "CVXOPT"
# side = "producer"
# target = "zoo/producers.py:CvxoptProducer"
# rule = "PB-11"
# also_rules = ["PB-01", "PB-09", "PB-12"]
# plan = '{"shape":[2,2]}'
# severity = "values"
# expected = """\
# A column-major matrix refuses PyBUF_C_CONTIGUOUS with BufferError. A consumer that is granted \
# the request may read element [0, 1] at the second place."""
# impact = "A consumer that asked for rows reads the transposed matrix, without an error."
# fix = """\
# In the getbuffer function of cvxopt.matrix, raise BufferError for PyBUF_C_CONTIGUOUS, and for \
# PyBUF_ND without PyBUF_STRIDES, unless one extent is 1."""
# status = "new"
# searched = """\
# 2026-11-23, threads on GitHub: cvxopt matrix buffer protocol Fortran order PyBUF_ND \
# C_CONTIGUOUS getbuffer"""
#
# [tool.gridbuf-finding.releases]
# date = "2026-11-24"
# "does not run" = ["1.1.6", "1.2.3", "1.2.7", "1.3.1"]
# package = "cvxopt"
# python = "3.12"
# listed = 16
# shown = ["1.3.2", "1.3.3"]
#
# [tool.gridbuf-finding.replays.affected]
# actual = "ND, ND|FORMAT, CONTIG granted"
# expected = "a refusal, for strides (8, 16) of shape (2, 2) are not C-contiguous"
# outcome = "FAIL"
#
# [tool.gridbuf-finding.runs."cvxopt-1.3.3"]
# date = "2026-11-25"
# exit = 1
# told = "defect: element [0, 1] is 1.0, not 2.0"
# ///
"""A matrix of CVXOPT, which is column-major, grants requests for rows: the consumer reads it transposed"""

import ctypes as c
import sys

import cvxopt


class View(c.Structure):  # Py_buffer
    _fields_ = [(name, c.c_ssize_t) for name in ("buf", "obj", "len", "itemsize")]
    _fields_ += [("readonly", c.c_int), ("ndim", c.c_int), ("format", c.c_char_p)]
    _fields_ += [(name, c.POINTER(c.c_ssize_t)) for name in ("shape", "strides", "suboffsets")]
    _fields_ += [("internal", c.c_void_p)]


def ask(exporter, flags):
    view = View()
    c.pythonapi.PyObject_GetBuffer(c.py_object(exporter), c.byref(view), flags)
    return view


matrix = cvxopt.matrix([0.0, 1.0, 2.0, 3.0, 4.0, 5.0], (2, 3))
try:
    view = ask(matrix, 0x38)  # PyBUF_C_CONTIGUOUS
except (BufferError, TypeError) as error:
    print("refused:", error)
    sys.exit(0)
second = c.c_double.from_address(view.buf + 8).value  # element [0, 1] in C order
sys.exit(f"defect: element [0, 1] is {second}, not {matrix[0, 1]}" if second != matrix[0, 1] else 0)
