# /// script
# requires-python = "==3.12.*"
# dependencies = ["onnxruntime==1.31.1", "numpy==2.5.5"]
#
# [tool.gridbuf-finding]
# library = "ONNX Runtime"
# side = "consumer"
# target = "zoo/consumers.py:onnxruntime_value"
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
# impact = "The OrtValue has other numbers than the caller gave, and no error says so."
# fix = "In ortvalue_from_numpy, test PyArray_ISNOTSWAPPED, and convert or refuse the array."
# source = "NumPy C API, Data access"
# source_link = "https://numpy.org/doc/2.2/reference/c-api/array.html#data-access"
# status = "new"
# searched = """\
# 2026-11-24, threads on GitHub: onnxruntime ortvalue_from_numpy big-endian byte order numpy \
# array wrong values"""
#
# [tool.gridbuf-finding.releases]
# date = "2026-11-24"
# "does not run" = ["1.17.0", "1.18.0"]
# package = "onnxruntime"
# python = "3.12"
# listed = 30
# shown = ["1.18.1", "1.19.0", "1.20.0", "1.23.1", "1.31.1", "1.32.0"]
#
# [tool.gridbuf-finding.replays.affected]
# actual = "1.5307832628951474e-37"
# expected = "6.474403375969398e-37 at element [0]"
# outcome = "FAIL"
#
# [tool.gridbuf-finding.replays.passes]
# outcome = "PASS"
#
# [tool.gridbuf-finding.runs."onnxruntime-1.31.1"]
# date = "2026-11-25"
# exit = 1
# told = "defect: [1.0, 2.0, 3.0, 4.0] became [4.600602988224807e-41, 8.96831017167883e-44, 2.304855714121459e-41, 4.600743118071239e-41]"
# ///
"""onnxruntime's OrtValue.ortvalue_from_numpy reads big-endian arrays as little-endian ones"""

import sys

import numpy as np
import onnxruntime

source = np.arange(1, 5, dtype=">f4")
try:
    copy = onnxruntime.OrtValue.ortvalue_from_numpy(source).numpy()
except (TypeError, ValueError, RuntimeError) as error:
    print("refused:", error)
    sys.exit(0)
sys.exit(f"defect: {source.tolist()} became {copy.tolist()}" if (copy != source).any() else 0)
