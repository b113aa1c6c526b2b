# /// script
# requires-python = "==3.12.*"
# dependencies = ["eigenpy==3.13.0", "numpy==2.4.6"]
#
# [tool.gridbuf-finding]
# library = "eigenpy"
# side = "consumer"
# target = "zoo/consumers.py:eigenpy_vector"
# rule = "AI-34"
# also_rules = ["PB-20"]
# plan = '{"dtype":"float64","byteorder":"swapped","export":"array-interface"}'
# passes = "numpy-2.5.5"
# passes_target = "numpy.asarray"
# pattern = "byte-order"
# severity = "values"
# expected = """\
# The result is [1.0, 2.0, 3.0, 4.0], or the array is refused. Code that reads the data of a NumPy \
# array has to respect its byte order."""
# impact = "The Quaternion has other numbers than the caller gave, and no error says so."
# fix = """\
# In the converter that Quaternion uses, test PyArray_ISNOTSWAPPED, and convert or refuse the \
# array."""
# source = "NumPy C API, Data access"
# source_link = "https://numpy.org/doc/2.2/reference/c-api/array.html#data-access"
# status = "new"
# searched = """\
# 2026-11-24, threads on GitHub: eigenpy numpy big-endian non-native byte order array wrong \
# values"""
#
# [tool.gridbuf-finding.releases]
# date = "2026-11-24"
# "does not run" = ["3.1.2", "3.1.3"]
# package = "eigenpy"
# python = "3.12"
# listed = 13
# shown = ["3.1.3.1", "3.1.4", "3.4.0", "3.13.0"]
#
# [tool.gridbuf-finding.replays.affected]
# actual = "1.5634076072010716e-297"
# expected = "4.1048022430272647e-215 at element [0]"
# outcome = "FAIL"
#
# [tool.gridbuf-finding.replays.passes]
# outcome = "PASS"
#
# [tool.gridbuf-finding.runs."eigenpy-3.13.0"]
# date = "2026-11-25"
# exit = 1
# told = "defect: [1.0, 2.0, 3.0, 4.0] became [3.03865e-319, 3.16e-322, 1.0435e-320, 2.0553e-320]"
# ///
"""eigenpy reads big-endian arrays as little-endian ones"""

import sys

import eigenpy
import numpy as np

source = np.arange(1, 5, dtype=">f8")
try:
    copy = eigenpy.Quaternion(source).coeffs()
except (TypeError, ValueError, RuntimeError) as error:
    print("refused:", error)
    sys.exit(0)
sys.exit(f"defect: {source.tolist()} became {copy.tolist()}" if (copy != source).any() else 0)
