# /// script
# requires-python = "==3.13.*"
# dependencies = ["pyarrow==26.0.1", "numpy==2.5.5"]
#
# [tool.gridbuf-finding]
# library = "PyArrow"
# side = "consumer"
# target = "zoo/consumers.py:pyarrow_tensor"
# rule = "AI-34"
# also_rules = ["PB-20"]
# plan = '{"dtype":"float32","byteorder":"swapped","export":"array-interface"}'
# passes = "numpy-2.5.5"
# passes_target = "numpy.asarray"
# pattern = "byte-order"
# severity = "values"
# expected = """\
# The result is [1.0, 2.0, 3.0, 4.0], or the array is refused. Code that reads the data of a NumPy \
# array has to respect its byte order."""
# impact = "The Tensor has other numbers than the caller gave, and no error says so."
# fix = """\
# In Tensor.from_numpy, raise ArrowNotImplementedError for an array with a swapped byte order, an \
# ArrowException as from other functions."""
# source = "NumPy C API, Data access"
# source_link = "https://numpy.org/doc/2.2/reference/c-api/array.html#data-access"
# status = "new"
# searched = """\
# 2026-11-24, threads on GitHub: pyarrow Tensor.from_numpy byte-swapped big-endian array not \
# checked"""
#
# [tool.gridbuf-finding.releases]
# date = "2026-11-24"
# "does not run" = ["0.9.0", "11.0.0", "14.0.2", "15.0.2", "16.1.0", "17.0.0"]
# package = "pyarrow"
# python = "3.13"
# listed = 53
# shown = ["18.0.0", "26.0.1"]
#
# [tool.gridbuf-finding.replays.affected]
# actual = "1.5307832628951474e-37"
# expected = "6.474403375969398e-37 at element [0]"
# outcome = "FAIL"
#
# [tool.gridbuf-finding.replays.passes]
# outcome = "PASS"
#
# [tool.gridbuf-finding.runs."pyarrow-26.0.1"]
# date = "2026-11-25"
# exit = 1
# told = "defect: [1.0, 2.0, 3.0, 4.0] became [4.600602988224807e-41, 8.96831017167883e-44, 2.304855714121459e-41, 4.600743118071239e-41]"
# ///
"""pyarrow.Tensor.from_numpy reads big-endian arrays as little-endian ones"""

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
