# /// script
# requires-python = "==3.12.*"
# dependencies = ["onnxruntime==1.31.1", "numpy==2.5.5"]
#
# [tool.gridbuf-finding]
# library = "ONNX Runtime"
# side = "consumer"
# target = "zoo/consumers.py:onnxruntime_value"
# rule = "AI-25"
# plan = '{"dtype":"float32","readonly":true,"export":"array-interface"}'
# passes = "numpy-2.5.5"
# passes_target = "numpy.asarray"
# why = """\
# The read-only flag of data is true when writing is not allowed (array interface, key data; \
# AI-25). ortvalue_from_numpy shares the memory of a read-only array, and numpy() returns a \
# writable one over it."""
# seen = "A read-only array changes when the result of ortvalue_from_numpy(a).numpy() is written."
# status = "new"
# searched = """\
# 2026-11-24, threads on GitHub: onnxruntime ortvalue_from_numpy numpy() lifetime dangling \
# memory freed"""
# ///
"""OrtValue.numpy() is writable over the memory of a read-only array."""

import sys

import numpy as np
import onnxruntime

source = np.ones(4, "f4")
source.flags.writeable = False
value = onnxruntime.OrtValue.ortvalue_from_numpy(source)
try:
    value.numpy()[0] = 2
except ValueError as error:
    print("refused:", error)
    sys.exit(0)
sys.exit(f"defect: a read-only array became {source.tolist()}" if source[0] != 1 else 0)
