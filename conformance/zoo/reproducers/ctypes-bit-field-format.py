# /// script
# requires-python = "==3.13.0"
# dependencies = []
#
# [tool.gridbuf-finding]
# library = "CPython"
# side = "producer"
# target = "ctypes.special"
# rule = "PB-04"
# plan = '{"dtype":"uint32"}'
# also_affected = ["cpython-3.10.13", "cpython-3.11.7", "cpython-3.12.1"]
# why = """\
# The buffer protocol: itemsize is the size of the format. PEP 3118 has the letter t for bits; \
# two fields in one integer of 4 bytes have the format of two integers, 8 bytes."""
# seen = """\
# memoryview of a Structure of two c_uint32 bit-fields: format 'T{<I:low:<I:high:}', itemsize 4."""
# status = "new"
# searched = """\
# 2026-11-25, threads on GitHub: ctypes Union memoryview format 'B' itemsize PEP 3118 wrong \
# buffer format union bit fields"""
# ///
"""memoryview of a ctypes.Structure with two bit-fields of one integer has the format of two integers."""

import ctypes as c
import sys


class Fields(c.Structure):
    _fields_ = [("low", c.c_uint32, 3), ("high", c.c_uint32, 29)]


view = memoryview(Fields())
print("format", view.format, "itemsize", view.itemsize)
if view.format.count("I") == 2 and view.itemsize == 4:
    sys.exit("defect: two integers of 4 bytes by its format, one by its itemsize")
