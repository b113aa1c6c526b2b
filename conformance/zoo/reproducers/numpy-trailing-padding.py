"""The buffer format of a big-endian record leaves out the padding at the record's end."""

import sys

import numpy as np

record = np.dtype([("a", "i1"), ("b", ">f8"), ("c", ">i2")], align=True)
view = memoryview(np.zeros(2, record))
print("format", view.format, "itemsize", view.itemsize)
written = 1 + view.format.count("x") + 8 + 2
if written != view.itemsize and "6x" not in view.format:
    sys.exit(f"defect: {written} bytes by its format, {view.itemsize} by its itemsize")
