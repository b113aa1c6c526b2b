# /// script
# requires-python = "==3.12.*"
# dependencies = ["eigenpy==3.13.0", "numpy==2.4.6"]
#
# [tool.gridbuf-finding]
# library = "eigenpy"
# side = "consumer"
# target = "zoo/consumers.py:eigenpy_vector"
# rule = "AI-22"
# also_rules = ["PB-32"]
# plan = '{"shape":[2],"export":"array-interface:field"}'
# passes = "numpy-2.5.5"
# passes_target = "numpy.asarray"
# pattern = "record-strides"
# severity = "values"
# expected = """\
# The result is [1.0, 2.0, 3.0, 4.0], or the array is refused. The strides of a NumPy array are bytes, \
# and need not be multiples of the item size."""
# impact = """\
# The vector has bytes of other fields and neighbours of the record, and no error says so."""
# fix = """\
# In NumpyMap, copy arrays whose strides are not a multiple of the item size: the division by the size \
# of an element rounds."""
# source = "NumPy reference, ndarray.strides"
# source_link = "https://numpy.org/doc/2.2/reference/generated/numpy.ndarray.strides.html"
# status = "new"
# searched = """\
# 2026-11-30, threads on GitHub: eigenpy numpy strides not multiple of itemsize structured \
# array field wrong values"""
#
# [tool.gridbuf-finding.releases]
# date = "2026-12-01"
# "does not run" = ["3.1.2", "3.1.3"]
# listed = 13
# package = "eigenpy"
# python = "3.12"
# series = 8
# shown = ["3.1.3.1", "3.1.4", "3.2.0", "3.3.0", "3.4.0", "3.5.1", "3.10.3", "3.12.0", "3.13.0"]
#
# [tool.gridbuf-finding.replays.affected]
# actual = "2.4344647154278677e+204"
# expected = "1.2303742345927276e-142 at element [1]"
# outcome = "FAIL"
#
# [tool.gridbuf-finding.replays.passes]
# outcome = "PASS"
#
# [tool.gridbuf-finding.runs."eigenpy-3.13.0"]
# date = "2026-11-30"
# exit = 1
# told = "defect: [1.0, 2.0, 3.0, 4.0] became [1.0, 0.0, 3.16e-322, 8.0987e-320]"
# ///
"""eigenpy reads a field of records with other strides"""

import sys

import eigenpy
import numpy as np

records = np.zeros(4, [("kind", "i1"), ("x", "f8")])
records["x"] = [1, 2, 3, 4]
source = records["x"]
try:
    copy = eigenpy.Quaternion(source).coeffs()
except (TypeError, ValueError, RuntimeError) as error:
    print("refused:", error)
    sys.exit(0)
sys.exit(f"defect: {source.tolist()} became {copy.tolist()}" if (copy != source).any() else 0)
