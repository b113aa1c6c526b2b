"""eigenpy reads big-endian arrays as little-endian ones."""

import sys

import eigenpy
import numpy as np

source = np.arange(1, 5, dtype=">f8")
try:
    copy = eigenpy.Quaternion(source).coeffs()
except (TypeError, ValueError, RuntimeError) as error:
    print("refused:", error)
    sys.exit(0)
sys.exit(f"defect: {source.tolist()} became {copy.tolist()}" if (copy != source).any() else 0)
