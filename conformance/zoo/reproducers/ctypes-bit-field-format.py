"""memoryview of a ctypes.Structure with two bit-fields of one integer has the format of two integers."""

import ctypes as c
import sys


class Fields(c.Structure):
    _fields_ = [("low", c.c_uint32, 3), ("high", c.c_uint32, 29)]


view = memoryview(Fields())
print("format", view.format, "itemsize", view.itemsize)
if view.format.count("I") == 2 and view.itemsize == 4:
    sys.exit("defect: two integers of 4 bytes by its format, one by its itemsize")
