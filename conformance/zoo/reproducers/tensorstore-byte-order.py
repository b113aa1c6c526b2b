"""tensorstore.array reads big-endian arrays as little-endian ones."""

import sys

import numpy as np
import tensorstore

source = np.arange(4, dtype=">f4")
try:
    copy = tensorstore.array(source).read().result()
except (TypeError, ValueError) as error:
    print("refused:", error)
    sys.exit(0)
sys.exit(f"defect: {source.tolist()} became {copy.tolist()}" if (copy != source).any() else 0)
