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
# severity = "values"
# expected = "itemsize is the size of one item as given by format. 'B' is one byte."
# impact = "A consumer that reads items by their format sees one of the 8 bytes."
# fix = """\
# For a Union, refuse the request for a format with BufferError, or use a format of 8 bytes such \
# as '8B'."""
# status = "new"
# searched = """\
# 2026-11-25, threads on GitHub: ctypes Union memoryview format 'B' itemsize PEP 3118 wrong \
# buffer format union bit fields"""
# counter = """\
# PEP 3118 has no syntax for a union, so no format of 8 bytes describes one. ctypes uses 'B' for \
# what it cannot describe."""
# counter_link = "https://peps.python.org/pep-3118/#additions-to-the-struct-string-syntax"
#
# [tool.gridbuf-finding.replays.affected]
# actual = "itemsize 8 (ND|FORMAT)"
# expected = "itemsize 1, the size of 'B'"
# outcome = "FAIL"
#
# [tool.gridbuf-finding.runs."cpython-3.10.13"]
# date = "2026-11-26"
# exit = 1
# told = "defect: two items of 8 bytes are read as [0, 0]"
#
# [tool.gridbuf-finding.runs."cpython-3.11.7"]
# date = "2026-11-26"
# exit = 1
# told = "defect: two items of 8 bytes are read as [0, 0]"
#
# [tool.gridbuf-finding.runs."cpython-3.12.1"]
# date = "2026-11-26"
# exit = 1
# told = "defect: two items of 8 bytes are read as [0, 0]"
#
# [tool.gridbuf-finding.runs."cpython-3.13.0"]
# date = "2026-11-26"
# exit = 1
# told = "defect: two items of 8 bytes are read as [0, 0]"
# ///
"""memoryview of a ctypes.Union has the format 'B' for an item of 8 bytes"""

import ctypes as c
import sys


class Number(c.Union):
    _fields_ = [("value", c.c_double), ("bytes", c.c_uint8 * 8)]


view = memoryview((Number * 2)(Number(1.5), Number(2.5)))
print("format", view.format, "itemsize", view.itemsize)
if view.format.endswith("B") and view.itemsize == 8:
    sys.exit(f"defect: two items of 8 bytes are read as {view.tolist()}")
