# /// script
# requires-python = "==3.13.0"
# dependencies = []
#
# [tool.gridbuf-finding]
# library = "CPython"
# side = "producer"
# target = "ctypes.special"
# rule = "PB-04"
# plan = '{}'
# also_affected = ["cpython-3.10.13", "cpython-3.11.7", "cpython-3.12.1"]
# why = """\
# The buffer protocol: itemsize is the size of one item as given by format. The format of every \
# union says one byte."""
# seen = "memoryview of a Union of c_double and eight bytes: format 'B', itemsize 8."
# status = "new"
# searched = """\
# 2026-11-25, threads on GitHub: ctypes Union memoryview format 'B' itemsize PEP 3118 wrong \
# buffer format union bit fields"""
# ///
"""memoryview of a ctypes.Union has the format 'B' for an item of 8 bytes."""

import ctypes as c
import sys


class Number(c.Union):
    _fields_ = [("value", c.c_double), ("bytes", c.c_uint8 * 8)]


view = memoryview(Number())
print("format", view.format, "itemsize", view.itemsize)
sys.exit("defect: one byte by its format, 8 by its itemsize" if view.format == "B" else 0)
