"""openvino.Tensor reads big-endian arrays as little-endian ones."""

import sys

import numpy as np
import openvino

source = np.arange(4, dtype=">f4")
try:
    copy = openvino.Tensor(source).data
except (TypeError, ValueError, RuntimeError) as error:
    print("refused:", error)
    sys.exit(0)
sys.exit(f"defect: {source.tolist()} became {copy.tolist()}" if (copy != source).any() else 0)
