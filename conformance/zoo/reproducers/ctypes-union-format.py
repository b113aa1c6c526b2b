"""memoryview of a ctypes.Union has the format 'B' for an item of 8 bytes."""

import ctypes as c
import sys


class Number(c.Union):
    _fields_ = [("value", c.c_double), ("bytes", c.c_uint8 * 8)]


view = memoryview(Number())
print("format", view.format, "itemsize", view.itemsize)
sys.exit("defect: one byte by its format, 8 by its itemsize" if view.format == "B" else 0)
