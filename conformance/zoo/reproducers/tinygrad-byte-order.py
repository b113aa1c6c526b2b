# /// script
# requires-python = "==3.12.*"
# dependencies = ["tinygrad==0.14.0", "numpy==2.4.6"]
#
# [tool.gridbuf-finding]
# library = "tinygrad"
# side = "consumer"
# target = "zoo/consumers.py:tinygrad_tensor"
# rule = "AI-34"
# also_rules = ["PB-20"]
# plan = '{"dtype":"float32","byteorder":"swapped","export":"array-interface"}'
# passes = "numpy-2.5.5"
# passes_target = "numpy.asarray"
# severity = "values"
# expected = """\
# The result is [1.0, 2.0, 3.0, 4.0], or the array is refused. The name of a NumPy type does not \
# have its byte order; isnative does."""
# impact = "The Tensor has other numbers than the caller gave, and no error says so."
# fix = """\
# In the constructor of tinygrad.Tensor, convert an array whose `dtype.isnative` is False, or \
# raise ValueError."""
# source = "NumPy reference, dtype.isnative"
# source_link = "https://numpy.org/doc/2.2/reference/generated/numpy.dtype.isnative.html"
# status = "new"
# searched = "2026-11-24, threads on GitHub: tinygrad Tensor from numpy big-endian dtype byte order"
# ///
"""tinygrad.Tensor reads big-endian arrays as little-endian ones."""

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
