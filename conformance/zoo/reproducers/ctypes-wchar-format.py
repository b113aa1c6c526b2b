"""memoryview of ctypes.c_wchar has the format 'u', which is 2 bytes in PEP 3118, for an item of 4."""

import ctypes as c
import sys

view = memoryview(c.c_wchar("a"))
print("format", view.format, "itemsize", view.itemsize)
if view.format.endswith("u") and view.itemsize == 4:
    sys.exit("defect: two bytes by its format, 4 by its itemsize")
