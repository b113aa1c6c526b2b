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
# ///
"""OrtValue.ortvalue_from_numpy reads big-endian arrays as little-endian ones."""

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
