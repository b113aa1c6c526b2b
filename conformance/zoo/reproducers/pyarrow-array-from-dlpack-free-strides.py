"""pyarrow.Array.from_dlpack refuses one element for the stride of its axis."""

import sys

import numpy as np
import pyarrow

column = np.zeros((1, 5))[:, 0]
print("strides", column.strides, "shape", column.shape, "contiguous", column.flags.c_contiguous)
try:
    pyarrow.Array.from_dlpack(column)
except pyarrow.ArrowInvalid as error:
    sys.exit(f"defect: {error}")
