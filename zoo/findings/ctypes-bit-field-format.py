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
# severity = "form"
# expected = """\
# itemsize is the size of one item as given by format. PEP 3118 has the letter t for bits."""
# impact = """\
# The format describes two integers of 4 bytes for an item of 4 bytes. The script shows no \
# consumer that reads them."""
# fix = """\
# In the format of a Structure with bit-fields, write PEP 3118's t for each field, or refuse the \
# request for a format with BufferError."""
# status = "new"
# searched = """\
# 2026-11-25, threads on GitHub: ctypes Union memoryview format 'B' itemsize PEP 3118 wrong \
# buffer format union bit fields"""
#
# [tool.gridbuf-finding.replays.affected]
# actual = "itemsize 4 (ND|FORMAT)"
# expected = "itemsize 8, the size of 'T{<I:low:<I:high:}'"
# outcome = "FAIL"
#
# [tool.gridbuf-finding.runs."cpython-3.10.13"]
# date = "2026-11-25"
# exit = 1
# told = "defect: two integers of 4 bytes by its format, one by its itemsize"
#
# [tool.gridbuf-finding.runs."cpython-3.11.7"]
# date = "2026-11-25"
# exit = 1
# told = "defect: two integers of 4 bytes by its format, one by its itemsize"
#
# [tool.gridbuf-finding.runs."cpython-3.12.1"]
# date = "2026-11-25"
# exit = 1
# told = "defect: two integers of 4 bytes by its format, one by its itemsize"
#
# [tool.gridbuf-finding.runs."cpython-3.13.0"]
# date = "2026-11-25"
# exit = 1
# told = "defect: two integers of 4 bytes by its format, one by its itemsize"
# ///
"""memoryview of a ctypes.Structure with two bit-fields of one integer has the format of two integers"""

import ctypes as c
import sys


class Fields(c.Structure):
    _fields_ = [("low", c.c_uint32, 3), ("high", c.c_uint32, 29)]


view = memoryview(Fields())
print("format", view.format, "itemsize", view.itemsize)
if view.format.count("I") == 2 and view.itemsize == 4:
    sys.exit("defect: two integers of 4 bytes by its format, one by its itemsize")
