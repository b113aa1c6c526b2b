"""Tensor.from_numpy reads big-endian arrays as little-endian ones."""

import sys

import numpy as np
import pyarrow as pa

source = np.arange(1, 5, dtype=">f4")
try:
    copy = pa.Tensor.from_numpy(source).to_numpy()
except (TypeError, ValueError, pa.ArrowException) as error:
    print("refused:", error)
    sys.exit(0)
sys.exit(f"defect: {source.tolist()} became {copy.tolist()}" if (copy != source).any() else 0)
