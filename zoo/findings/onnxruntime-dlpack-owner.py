# /// script
# requires-python = "==3.12.*"
# dependencies = ["onnxruntime==1.31.1", "numpy==2.5.5"]
#
# [tool.gridbuf-finding]
# library = "ONNX Runtime"
# side = "producer"
# target = "onnxruntime"
# rule = "XA-11"
# plan = "{}"
# passes = "numpy-2.5.5"
# passes_target = "numpy"
# severity = "memory"
# expected = "The array keeps its values: the capsule holds the NumPy array that the value was made of."
# impact = """\
# Other arrays write into the memory after the source and the value are dropped. With larger arrays the \
# process may die."""
# fix = """\
# Where an OrtValue is made of a NumPy array without a copy, let the deleter of its tensor hold a \
# reference to the array, so that a DLPack capsule of the value holds it, too."""
# status = "new"
# searched = """\
# 2026-11-30, threads on GitHub: onnxruntime OrtValue to_dlpack numpy from_dlpack memory freed after \
# OrtValue deleted dangling"""
#
# [tool.gridbuf-finding.releases]
# date = "2026-12-01"
# "does not run" = ["1.17.0", "1.23.1", "1.25.1"]
# listed = 30
# package = "onnxruntime"
# python = "3.12"
# series = 7
# shown = ["1.26.0", "1.27.0", "1.28.0", "1.29.0", "1.30.0", "1.31.1", "1.32.0"]
#
# [tool.gridbuf-finding.replays.affected]
# actual = "another value in place of 4.1048022430272647e-215 at element [0] after object was dropped (order: object, DL)"
# expected = "memory of DL that keeps its elements while it is held"
# outcome = "FAIL"
#
# [tool.gridbuf-finding.replays.passes]
# outcome = "PASS"
#
# [tool.gridbuf-finding.runs."onnxruntime-1.31.1"]
# date = "2026-11-30"
# exit = 1
# told = "defect: the memory was freed, another array has it"
# ///
"""The DLPack capsule of onnxruntime's OrtValue does not hold the NumPy array that has the memory"""

import sys

import numpy as np
import onnxruntime

source = np.arange(1000.0)
value = onnxruntime.OrtValue.ortvalue_from_numpy(source)
array = np.from_dlpack(value)
before = array.tolist()
del source, value
others = [np.full(1000, -1.0) for _ in range(8)]
changed = array.tolist() != before
sys.exit("defect: the memory was freed, another array has it" if changed else 0)
