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
# severity = "values"
# expected = "The array of a value over read-only memory is not writable, or the value is a copy."
# impact = "A write to the array changes an array that its owner made read-only."
# fix = """\
# In ortvalue_from_numpy, remember the writeable flag of the array, and clear it on the result of \
# numpy()."""
# source = "NumPy C API, Data access"
# source_link = "https://numpy.org/doc/2.2/reference/c-api/array.html#data-access"
# status = "new"
# searched = """\
# 2026-11-24, threads on GitHub: onnxruntime ortvalue_from_numpy numpy() lifetime dangling \
# memory freed"""
# counter = """\
# ortvalue_from_numpy shares the memory on purpose, and the maintainers leave its use to the \
# caller."""
# counter_link = "https://github.com/microsoft/onnxruntime/pull/28088"
#
# [tool.gridbuf-finding.releases]
# date = "2026-11-24"
# "does not run" = ["1.17.0", "1.18.0"]
# gone = ["1.18.1"]
# package = "onnxruntime"
# python = "3.12"
# listed = 30
# shown = ["1.19.0", "1.20.0", "1.23.1", "1.31.1", "1.32.0"]
#
# [tool.gridbuf-finding.replays.affected]
# actual = "the result says it is writable"
# expected = "a read-only result over read-only memory"
# outcome = "FAIL"
#
# [tool.gridbuf-finding.replays.passes]
# outcome = "PASS"
#
# [tool.gridbuf-finding.runs."onnxruntime-1.31.1"]
# date = "2026-11-25"
# exit = 1
# told = "defect: a read-only array became [2.0, 1.0, 1.0, 1.0]"
# ///
"""onnxruntime's OrtValue.numpy() is writable over the memory of a read-only array"""

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
