"""memoryview of a packed ctypes.Structure has the format 'B' for an item of 13 bytes."""

import ctypes as c
import sys


class Packed(c.Structure):
    _pack_ = 1
    _fields_ = [("a", c.c_uint8), ("b", c.c_double), ("c", c.c_int32)]


view = memoryview(Packed())
print("format", view.format, "itemsize", view.itemsize)
sys.exit("defect: one byte by its format, 13 by its itemsize" if view.format == "B" else 0)
