# /// script
# requires-python = "==3.13.0"
# dependencies = []
#
# [tool.gridbuf-finding]
# library = "CPython"
# side = "producer"
# target = "ctypes.special"
# rule = "PB-04"
# plan = '{"dtype":"str1"}'
# also_affected = ["cpython-3.10.13", "cpython-3.11.7", "cpython-3.12.1"]
# why = """\
# In PEP 3118 u is a character of two bytes, and w is one of four. itemsize is the size of the \
# format (buffer protocol). array.array exports 'w' for the same characters."""
# seen = "memoryview(ctypes.c_wchar()) where wchar_t has 4 bytes: format '<u', itemsize 4."
# status = "new"
# searched = """\
# 2026-11-25, threads on GitHub: ctypes c_wchar buffer format '<u' itemsize 4 PEP 3118 UCS-2 'w'"""
# ///
"""memoryview of ctypes.c_wchar has the format 'u', which is 2 bytes in PEP 3118, for an item of 4."""

import ctypes as c
import sys

view = memoryview(c.c_wchar("a"))
print("format", view.format, "itemsize", view.itemsize)
if view.format.endswith("u") and view.itemsize == 4:
    sys.exit("defect: two bytes by its format, 4 by its itemsize")
