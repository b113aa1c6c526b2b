# /// script
# requires-python = "==3.12.*"
# dependencies = ["PyGLM==2.8.3"]
#
# [tool.gridbuf-finding]
# library = "PyGLM"
# side = "producer"
# target = "gridbuf_conformance.producers.glm:ArrayProducer"
# rule = "PB-02"
# also_rules = ["PB-12", "PB-13", "XA-11", "XA-13"]
# plan = '{"shape":[1,2]}'
# passes = "numpy-2.5.5"
# passes_target = "numpy"
# why = """\
# The request is answered with memory that is not the array's, with strides that are in no \
# order, and with readonly 1. The release, or the next use, ends in SIGSEGV."""
# seen = """\
# PyObject_GetBuffer(array, 0x59) and PyBuffer_Release through ctypes in a loop: SIGSEGV (exit \
# 139)."""
# status = "new"
# searched = """\
# 2026-11-23, threads on GitHub: PyGLM glm.array buffer protocol crash F_CONTIGUOUS wrong \
# strides memoryview"""
# picture = """
# two vectors of three doubles
# memory         | x0 y0 z0 x1 y1 z1 |            48 bytes
# answer         shape (2, 3), strides (8, 24)    the last element is at byte 56"""
# ///
"""glm.array of vectors answers F_CONTIGUOUS|WRITABLE with memory that is not the array's."""

import ctypes as c
import subprocess
import sys

import glm

if len(sys.argv) < 2:
    died = subprocess.run([sys.executable, __file__, "child"]).returncode
    sys.exit(f"defect: the process died of signal {-died}" if died < 0 else 2 * bool(died))


class View(c.Structure):  # Py_buffer
    _fields_ = [(name, c.c_ssize_t) for name in ("buf", "obj", "len", "itemsize")]
    _fields_ += [("readonly", c.c_int), ("ndim", c.c_int), ("format", c.c_char_p)]
    _fields_ += [(name, c.POINTER(c.c_ssize_t)) for name in ("shape", "strides", "suboffsets")]
    _fields_ += [("internal", c.c_void_p)]


def ask(exporter, flags):
    view = View()
    c.pythonapi.PyObject_GetBuffer(c.py_object(exporter), c.byref(view), flags)
    return view


for _ in range(2000):
    array = glm.array(glm.dvec3(1), glm.dvec3(2))
    try:
        view = ask(array, 0x59)  # PyBUF_F_CONTIGUOUS | PyBUF_WRITABLE
    except (BufferError, ValueError) as error:
        print("refused:", error)
        break
    c.pythonapi.PyBuffer_Release(c.byref(view))
