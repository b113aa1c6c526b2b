"""add_items ignores the strides of an array."""

import sys

import numpy as np
import voyager

source = np.arange(1, 7, dtype="f4").reshape(3, 2).T
try:
    index = voyager.Index(voyager.Space.Euclidean, num_dimensions=source.shape[1])
    copy = index.get_vectors(index.add_items(source))
except (TypeError, ValueError, RuntimeError) as error:
    print("refused:", error)
    sys.exit(0)
sys.exit(f"defect: {source.tolist()} became {copy.tolist()}" if (copy != source).any() else 0)
