"""numpy.save writes the memory of an array without regard to its strides; of a broadcast array it writes memory behind it."""

import sys

import numpy as np
from safetensors.numpy import load, save

source = np.arange(1, 7, dtype="f4").reshape(3, 2).T
try:
    copy = load(save({"x": source}))["x"]
except (TypeError, ValueError, RuntimeError) as error:
    print("refused:", error)
    sys.exit(0)
sys.exit(f"defect: {source.tolist()} became {copy.tolist()}" if (copy != source).any() else 0)
