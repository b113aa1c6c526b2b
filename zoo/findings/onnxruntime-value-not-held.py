# /// script
# requires-python = "==3.12.*"
# dependencies = ["onnxruntime==1.31.1", "numpy==2.5.5"]
#
# [tool.gridbuf-finding]
# library = "ONNX Runtime"
# side = "consumer"
# target = "zoo/consumers.py:onnxruntime_value"
# rule = "AI-28"
# also_rules = ["PB-35"]
# plan = '{"dtype":"float32","export":"array-interface"}'
# passes = "numpy-2.5.5"
# passes_target = "numpy.asarray"
# severity = "memory"
# expected = "The array holds the object that owns its memory, the source."
# impact = "The array points into freed memory after the source and the value are dropped."
# fix = """\
# In OrtValue.numpy, make the base of the array an object that holds the memory given to \
# ortvalue_from_numpy."""
# source = "NumPy C API, PyArray_SimpleNewFromData"
# source_link = "https://numpy.org/doc/2.2/reference/c-api/array.html#c.PyArray_SimpleNewFromData"
# status = "reported"
# tracker = "https://github.com/microsoft/onnxruntime/pull/28088"
# counter = """\
# The maintainers kept this on purpose for OrtValue.numpy() when they changed other results: the \
# caller manages the memory."""
# counter_link = "https://github.com/microsoft/onnxruntime/pull/28088"
#
# [tool.gridbuf-finding.releases]
# date = "2026-11-30"
# "does not run" = ["1.17.0", "1.18.0"]
# gone = ["1.18.1"]
# listed = 30
# package = "onnxruntime"
# python = "3.12"
# series = 15
# shown = ["1.19.0", "1.19.2", "1.20.0", "1.20.1", "1.21.1", "1.22.1", "1.23.1", "1.23.2", "1.24.4", "1.25.1", "1.26.0", "1.27.0", "1.28.0", "1.29.0", "1.30.0", "1.31.1", "1.32.0"]
#
# [tool.gridbuf-finding.replays.affected]
# actual = "the memory was given back while the result points into it"
# expected = "the exporting object is held as long as the result lives"
# outcome = "FAIL"
#
# [tool.gridbuf-finding.replays.passes]
# outcome = "PASS"
#
# [tool.gridbuf-finding.runs."onnxruntime-1.31.1"]
# date = "2026-11-25"
# exit = 1
# told = "defect: the memory of the array was freed"
# ///
"""The array of onnxruntime's OrtValue.numpy() points into memory that it does not hold"""

import sys
import weakref

import numpy as np
import onnxruntime

source = np.ones(10**6, "f4")
address, alive = source.ctypes.data, weakref.ref(source)
value = onnxruntime.OrtValue.ortvalue_from_numpy(source)
array = value.numpy()
shared = array.ctypes.data == address
del source, value
sys.exit("defect: the memory of the array was freed" if shared and alive() is None else 0)
