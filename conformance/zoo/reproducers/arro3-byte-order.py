"""Array.from_numpy reads big-endian arrays as little-endian ones."""

import sys

import arro3.core
import numpy as np

source = np.arange(1, 5, dtype=">f8")
try:
    copy = arro3.core.Array.from_numpy(source).to_numpy()
except (TypeError, ValueError, RuntimeError) as error:
    print("refused:", error)
    sys.exit(0)
sys.exit(f"defect: {source.tolist()} became {copy.tolist()}" if (copy != source).any() else 0)
