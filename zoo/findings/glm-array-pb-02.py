# /// script
# requires-python = "==3.12.*"
# dependencies = ["PyGLM==2.8.3"]
#
# [tool.gridbuf-finding]
# library = "PyGLM"
# side = "producer"
# target = "gridbuf_conformance.plugins.libraries.glm:ArrayProducer"
# rule = "PB-02"
# also_rules = ["DX-01", "PB-12", "PB-13", "XA-11", "XA-13"]
# plan = '{"shape":[1,2]}'
# passes = "numpy-2.5.5"
# passes_target = "numpy"
# severity = "memory"
# expected = """\
# buf is the address of the array, and readonly is 0, because the request has PyBUF_WRITABLE. If \
# the array cannot give that, it raises BufferError."""
# impact = """\
# A consumer reads memory that is not the array's, and cannot write to the array. By the strides \
# [8, 24] the last element is behind the array's size."""
# fix = """\
# In the getbuffer function of glm.array, raise BufferError for PyBUF_F_CONTIGUOUS unless the \
# array has one dimension."""
# status = "new"
# searched = """\
# 2026-11-23, threads on GitHub: PyGLM glm.array buffer protocol crash F_CONTIGUOUS wrong \
# strides memoryview"""
# picture = """
# two vectors of three doubles
# memory         | x0 y0 z0 x1 y1 z1 |            48 bytes
# answer         shape (2, 3), strides (8, 24)    the last element is at byte 56"""
#
# [tool.gridbuf-finding.releases]
# date = "2026-11-26"
# "does not run" = ["1.0.0", "2.3.1", "2.5.7", "2.7.0"]
# package = "PyGLM"
# python = "3.12"
# listed = 36
# shown = ["2.7.1", "2.7.2", "2.8.3"]
#
# [tool.gridbuf-finding.replays.affected]
# actual = "the process died by SIGSEGV at step pb:flags=F_CONTIGUOUS|WRITABLE"
# expected = "the process answers and lives on"
# outcome = "CRASH"
#
# [tool.gridbuf-finding.replays.passes]
# note = "ndim is 0 under FORMAT and 2 elsewhere; exporters differ on requests without a shape, and it is not judged"
# outcome = "PASS"
#
# [tool.gridbuf-finding.runs."pyglm-2.8.3"]
# date = "2026-11-26"
# exit = 1
# told = "defect: other memory than the array's is granted, readonly 1, strides [8, 24] for shape [2, 3]"
# ///
"""glm.array of vectors answers F_CONTIGUOUS|WRITABLE with memory that is not the array's, read-only"""

import ctypes as c
import os
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


array = glm.array(glm.dvec3(1), glm.dvec3(2))
try:
    view = ask(array, 0x59)  # PyBUF_F_CONTIGUOUS | PyBUF_WRITABLE
except (BufferError, ValueError) as error:
    print("refused:", error)
    sys.exit(0)
told = f"readonly {view.readonly}, strides {view.strides[:2]} for shape {view.shape[:2]}"
if view.buf != array.address:
    print("defect: other memory than the array's is granted,", told, flush=True)
    os._exit(
        1
    )  # the end of this process may be a crash: memory was released that is not the array's
