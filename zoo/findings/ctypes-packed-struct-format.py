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
# severity = "values"
# expected = """\
# The format describes all 13 bytes of an item, because itemsize is the size of the format."""
# impact = "A consumer that reads items by their format loses the fields behind the first byte."
# fix = """\
# In ctypes, write the format of a Structure with `_pack_` with PEP 3118's T{…} and explicit \
# padding. 3.12 does it."""
# status = "fixed"
# fixed_in = "3.12"
# tracker = "https://github.com/python/cpython/issues/76961"
#
# [tool.gridbuf-finding.replays.affected]
# actual = "itemsize 13 (ND|FORMAT)"
# expected = "itemsize 1, the size of 'B'"
# outcome = "FAIL"
#
# [tool.gridbuf-finding.replays.passes]
# outcome = "PASS"
#
# [tool.gridbuf-finding.runs."cpython-3.10.13"]
# date = "2026-11-26"
# exit = 1
# told = "defect: two items of 13 bytes are read as [1, 4]"
#
# [tool.gridbuf-finding.runs."cpython-3.11.7"]
# date = "2026-11-26"
# exit = 1
# told = "defect: two items of 13 bytes are read as [1, 4]"
#
# [tool.gridbuf-finding.runs."cpython-3.13.0"]
# date = "2026-11-26"
# exit = 0
# told = ""
# ///
"""memoryview of a packed ctypes.Structure has the format 'B' for an item of 13 bytes"""

import ctypes as c
import sys


class Packed(c.Structure):
    _pack_ = 1
    _fields_ = [("a", c.c_uint8), ("b", c.c_double), ("c", c.c_int32)]


view = memoryview((Packed * 2)(Packed(1, 2.0, 3), Packed(4, 5.0, 6)))
print("format", view.format, "itemsize", view.itemsize)
if view.format == "B" and view.itemsize == 13:
    sys.exit(f"defect: two items of 13 bytes are read as {view.tolist()}")
