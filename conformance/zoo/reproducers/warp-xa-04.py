"""A bfloat16 array of Warp says <u2 in __array_interface__."""

import sys

import numpy as np
import warp

warp.config.quiet = True
array = warp.full(2, 1.5, dtype=warp.bfloat16, device="cpu")
values = np.asarray(array).tolist()
sys.exit(f"defect: 1.5 is read as {values[0]}" if values[0] != 1.5 else 0)
