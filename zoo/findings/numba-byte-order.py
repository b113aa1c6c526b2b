# /// script
# requires-python = "==3.12.*"
# dependencies = ["numba==0.68.1", "numpy==2.4.6"]
#
# [tool.gridbuf-finding]
# library = "Numba"
# side = "consumer"
# target = "zoo/consumers.py:numba_field"
# rule = "AI-34"
# also_rules = ["PB-20"]
# plan = '{"dtype":"float32","byteorder":"swapped","export":"array-interface"}'
# passes = "numpy-2.5.5"
# passes_target = "numpy.asarray"
# severity = "values"
# expected = """\
# The array is refused, as it is without the first call, or its first element is 1.0. Code that reads the data \
# of a NumPy array has to respect its byte order."""
# impact = """\
# A field of records read from a file of the other byte order gives other numbers, and no error says \
# so. Whether it is refused depends on which arrays the function was called with before."""
# fix = """\
# Where a function of numba.njit looks up the type of an array that is not aligned, compare the byte \
# order, too: the key of the lookup is without it."""
# source = "NumPy C API, Data access"
# source_link = "https://numpy.org/doc/2.2/reference/c-api/array.html#data-access"
# status = "new"
# searched = """\
# 2026-11-30, threads on GitHub: numba big-endian unaligned array structured field wrong result after \
# compile typeof fingerprint byte order"""
#
# [tool.gridbuf-finding.releases]
# date = "2026-11-30"
# "does not run" = ["0.1", "0.36.2", "0.51.1", "0.57.0", "0.58.1"]
# listed = 99
# package = "numba"
# python = "3.12"
# series = 10
# shown = ["0.59.0", "0.59.1", "0.60.0", "0.61.2", "0.62.1", "0.63.1", "0.64.0", "0.65.1", "0.66.0", "0.67.0", "0.68.1"]
#
# [tool.gridbuf-finding.replays.affected]
# actual = "1.5307832628951474e-37"
# expected = "6.474403375969398e-37 at element [0]"
# outcome = "FAIL"
#
# [tool.gridbuf-finding.replays.passes]
# outcome = "PASS"
#
# [tool.gridbuf-finding.runs."numba-0.68.1"]
# date = "2026-11-30"
# exit = 1
# told = "defect: 1.0 is read as 3.03865e-319"
# ///
"""A function of Numba reads big-endian fields as native ones after it has seen a native field"""

import sys

import numba
import numpy as np


def field(order):
    records = np.zeros(3, [("first", "i1"), ("x", f"{order}f8")])
    records["x"] = [1, 2, 3]
    return records["x"]


first = numba.njit(lambda x: x[0])
print("native:", first(field("<")))
try:
    got = first(field(">"))
except numba.TypingError as error:
    sys.exit(print("refused:", type(error).__name__))
sys.exit(f"defect: 1.0 is read as {got}" if got != 1 else 0)
