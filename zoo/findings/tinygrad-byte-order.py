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
# pattern = "byte-order"
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
#
# [tool.gridbuf-finding.releases]
# date = "2026-11-24"
# "does not run" = ["0.1.0", "0.4.0", "0.6.0", "0.7.0", "0.8.0"]
# package = "tinygrad"
# python = "3.12"
# listed = 21
# shown = ["0.9.0", "0.14.0"]
#
# [tool.gridbuf-finding.replays.affected]
# actual = "1.5307832628951474e-37"
# expected = "6.474403375969398e-37 at element [0]"
# outcome = "FAIL"
#
# [tool.gridbuf-finding.replays.passes]
# outcome = "PASS"
#
# [tool.gridbuf-finding.runs."tinygrad-0.14.0"]
# date = "2026-11-25"
# exit = 1
# told = "defect: [1.0, 2.0, 3.0, 4.0] became [4.600602988224807e-41, 8.96831017167883e-44, 2.304855714121459e-41, 4.600743118071239e-41]"
# ///
"""tinygrad.Tensor reads big-endian arrays as little-endian ones"""

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
