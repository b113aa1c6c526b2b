"""OrtValue.ortvalue_from_numpy reads big-endian arrays as little-endian ones."""

import sys

import numpy as np
import onnxruntime

source = np.arange(1, 5, dtype=">f4")
try:
    copy = onnxruntime.OrtValue.ortvalue_from_numpy(source).numpy()
except (TypeError, ValueError, RuntimeError) as error:
    print("refused:", error)
    sys.exit(0)
sys.exit(f"defect: {source.tolist()} became {copy.tolist()}" if (copy != source).any() else 0)
