# /// script
# requires-python = "==3.12.*"
# dependencies = ["onnxruntime==1.31.1", "numpy==2.5.5"]
#
# [tool.gridbuf-finding]
# library = "ONNX Runtime"
# side = "producer"
# target = "onnxruntime"
# rule = "DP-15"
# plan = '{}'
# passes = "numpy-2.5.5"
# passes_target = "numpy"
# severity = "form"
# expected = "On the CPU only stream None is accepted, so stream=1 is an error."
# impact = """\
# A caller that passes a CUDA stream to an array of the CPU by mistake does not notice it. The \
# capsule of the OrtValue is not wrong in itself."""
# fix = """\
# In OrtValue.__dlpack__, raise BufferError if stream is not None and the value is on the CPU."""
# status = "new"
# searched = """\
# 2026-11-23, threads on GitHub: onnxruntime OrtValue from_dlpack byte_offset ignored NULL \
# deleter crash"""
#
# [tool.gridbuf-finding.releases]
# date = "2026-11-24"
# "does not run" = ["1.17.0", "1.20.0", "1.20.1", "1.21.0", "1.21.1", "1.23.1", "1.25.1"]
# package = "onnxruntime"
# python = "3.12"
# listed = 30
# shown = ["1.26.0", "1.28.0", "1.31.1", "1.32.0"]
#
# [tool.gridbuf-finding.replays.affected]
# actual = "accepted"
# expected = "an error for stream=1 on the CPU"
# outcome = "FAIL"
#
# [tool.gridbuf-finding.replays.passes]
# outcome = "PASS"
#
# [tool.gridbuf-finding.runs."onnxruntime-1.31.1"]
# date = "2026-11-25"
# exit = 1
# told = "defect: stream=1 gives <capsule object \"dltensor\" at …> on device (1, 0)"
# ///
"""onnxruntime's OrtValue.__dlpack__ takes stream=1, a CUDA stream, for memory of the CPU"""

import sys

import numpy as np
import onnxruntime

exporter = onnxruntime.OrtValue.ortvalue_from_numpy(np.zeros(2, "f4"))
try:
    capsule = exporter.__dlpack__(stream=1)
except (AssertionError, BufferError, RuntimeError, TypeError, ValueError) as error:
    print("refused:", error)
    sys.exit(0)
sys.exit(f"defect: stream=1 gives {capsule} on device {exporter.__dlpack_device__()}")
