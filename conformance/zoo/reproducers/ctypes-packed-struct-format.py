# /// script
# requires-python = "==3.10.13"
# dependencies = []
#
# [tool.gridbuf-finding]
# library = "CPython"
# side = "producer"
# target = "ctypes"
# rule = "PB-04"
# also_rules = ["PB-20"]
# plan = '{"dtype":"struct"}'
# also_affected = ["cpython-3.11.7"]
# passes = "cpython-3.13.0"
# why = """\
# The buffer protocol: itemsize is the size of one item as given by format, calcsize(format). \
# The format says one byte for an itemsize of 13."""
# seen = """\
# memoryview of a Structure with _pack_ = 1: format 'B', itemsize 13 in 3.10 and 3.11, not in \
# 3.12."""
# status = "fixed"
# fixed_in = "3.12"
# tracker = "https://github.com/python/cpython/issues/76961"
# ///
"""memoryview of a packed ctypes.Structure has the format 'B' for an item of 13 bytes."""

import ctypes as c
import sys


class Packed(c.Structure):
    _pack_ = 1
    _fields_ = [("a", c.c_uint8), ("b", c.c_double), ("c", c.c_int32)]


view = memoryview(Packed())
print("format", view.format, "itemsize", view.itemsize)
sys.exit("defect: one byte by its format, 13 by its itemsize" if view.format == "B" else 0)
