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
# severity = "form"
# expected = """\
# PEP 3118 has u for characters of 2 bytes and w for those of 4. itemsize is the size of the \
# format."""
# impact = """\
# The format describes 2 bytes of an item of 4 bytes. The script shows no consumer that reads \
# them."""
# fix = "Give c_wchar the format 'w' where wchar_t has 4 bytes, as array.array does."
# status = "new"
# searched = """\
# 2026-11-25, threads on GitHub: ctypes c_wchar buffer format '<u' itemsize 4 PEP 3118 UCS-2 'w'"""
#
# [tool.gridbuf-finding.replays.affected]
# actual = "itemsize 4 (ND|FORMAT)"
# expected = "itemsize 2, the size of '<u'"
# outcome = "FAIL"
#
# [tool.gridbuf-finding.runs."cpython-3.10.13"]
# date = "2026-11-25"
# exit = 1
# told = "defect: two bytes by its format, 4 by its itemsize"
#
# [tool.gridbuf-finding.runs."cpython-3.11.7"]
# date = "2026-11-25"
# exit = 1
# told = "defect: two bytes by its format, 4 by its itemsize"
#
# [tool.gridbuf-finding.runs."cpython-3.12.1"]
# date = "2026-11-25"
# exit = 1
# told = "defect: two bytes by its format, 4 by its itemsize"
#
# [tool.gridbuf-finding.runs."cpython-3.13.0"]
# date = "2026-11-25"
# exit = 1
# told = "defect: two bytes by its format, 4 by its itemsize"
# ///
"""memoryview of ctypes.c_wchar has the format 'u', which is 2 bytes in PEP 3118, for an item of 4"""

import ctypes as c
import sys

view = memoryview(c.c_wchar("a"))
print("format", view.format, "itemsize", view.itemsize)
if view.format.endswith("u") and view.itemsize == 4:
    sys.exit("defect: two bytes by its format, 4 by its itemsize")
