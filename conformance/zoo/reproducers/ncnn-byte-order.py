"""Mat(buffer) reads big-endian numbers as little-endian ones."""

import sys

import ncnn
import numpy as np

source = np.arange(1, 5, dtype=">f4")
try:
    copy = np.array(ncnn.Mat(source))
except (TypeError, ValueError, RuntimeError) as error:
    print("refused:", error)
    sys.exit(0)
sys.exit(f"defect: {source.tolist()} became {copy.tolist()}" if (copy != source).any() else 0)
