"""Tensor(array) reads big-endian arrays as little-endian ones."""

import sys

import numpy as np
import tinygrad

source = np.arange(1, 5, dtype=">f4")
try:
    copy = tinygrad.Tensor(source, device="PYTHON").numpy()
except (TypeError, ValueError, RuntimeError) as error:
    print("refused:", error)
    sys.exit(0)
sys.exit(f"defect: {source.tolist()} became {copy.tolist()}" if (copy != source).any() else 0)
