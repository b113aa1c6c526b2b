# /// script
# requires-python = "==3.12.*"
# dependencies = ["drjit==1.5.0", "numpy==2.5.5"]
#
# [tool.gridbuf-finding]
# library = "Dr.Jit"
# side = "producer"
# target = "drjit"
# rule = "DP-15"
# plan = '{}'
# passes = "numpy-2.5.5"
# passes_target = "numpy"
# severity = "form"
# expected = "On the CPU only stream None is accepted, so stream=1 is an error."
# impact = """\
# A caller that passes a CUDA stream to an array of the CPU by mistake does not notice it. The \
# capsule of the tensor is not wrong in itself."""
# fix = """\
# In __dlpack__ of TensorXf and the other arrays, raise BufferError if stream is not None and the \
# array is on the CPU."""
# status = "new"
# searched = """\
# 2026-11-23, threads on GitHub: __dlpack__ stream argument on CPU accepted ignored drjit PyAV \
# VideoPlane mlx"""
# counter = """\
# The library exports by nanobind, which takes and ignores the argument on purpose, and explains \
# it in its documentation."""
# counter_link = "https://github.com/wjakob/nanobind/pull/1383"
#
# [tool.gridbuf-finding.releases]
# date = "2026-11-24"
# gone = ["0.4.4", "0.4.5", "0.4.6"]
# package = "drjit"
# python = "3.12"
# listed = 14
# shown = ["1.0.0", "1.0.3", "1.5.0"]
#
# [tool.gridbuf-finding.replays.affected]
# actual = "accepted"
# expected = "an error for stream=1 on the CPU"
# outcome = "FAIL"
#
# [tool.gridbuf-finding.replays.passes]
# outcome = "PASS"
#
# [tool.gridbuf-finding.runs."drjit-1.5.0"]
# date = "2026-11-25"
# exit = 1
# told = "defect: stream=1 gives <capsule object \"dltensor\" at …> on device (1, 0)"
# ///
"""__dlpack__ of Dr.Jit takes stream=1, a CUDA stream, for memory of the CPU"""

import sys

import drjit
import numpy as np

exporter = drjit.scalar.TensorXf(np.zeros((2, 2), "f4"))
try:
    capsule = exporter.__dlpack__(stream=1)
except (AssertionError, BufferError, RuntimeError, TypeError, ValueError) as error:
    print("refused:", error)
    sys.exit(0)
sys.exit(f"defect: stream=1 gives {capsule} on device {exporter.__dlpack_device__()}")
