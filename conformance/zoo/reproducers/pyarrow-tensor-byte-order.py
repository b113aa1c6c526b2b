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
# why = """\
# The first character of typestr is the byte order: a consumer uses it or refuses the array \
# (AI-34). pyarrow.array refuses such an array; Tensor.from_numpy does not look at the byte \
# order."""
# seen = "[1.0, 2.0] as '>f4' comes back as other numbers, without an error."
# status = "new"
# searched = """\
# 2026-11-24, threads on GitHub: pyarrow Tensor.from_numpy byte-swapped big-endian array not \
# checked"""
# ///
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
