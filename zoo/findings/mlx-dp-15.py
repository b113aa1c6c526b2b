# /// script
# requires-python = "==3.12.*"
# dependencies = ["mlx[cpu]==0.32.4", "numpy==2.5.5"]
#
# [tool.gridbuf-finding]
# library = "MLX"
# side = "producer"
# target = "mlx"
# rule = "DP-15"
# plan = '{"dtype":"int8"}'
# passes = "numpy-2.5.5"
# passes_target = "numpy"
# severity = "form"
# expected = "On the CPU only stream None is accepted, so stream=1 is an error."
# impact = """\
# A caller that passes a CUDA stream to an array of the CPU by mistake does not notice it. The \
# capsule of the array is not wrong in itself."""
# fix = """\
# In __dlpack__ of mx.array, raise BufferError if stream is not None and the array is on the CPU."""
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
# "does not run" = ["0.2.0"]
# gone = ["0.21.1", "0.26.1", "0.26.5", "0.29.4", "0.31.0", "0.31.1", "0.31.2"]
# package = "mlx"
# python = "3.12"
# listed = 28
# shown = ["0.32.0", "0.32.1", "0.32.2", "0.32.4"]
#
# [tool.gridbuf-finding.replays.affected]
# actual = "accepted"
# expected = "an error for stream=1 on the CPU"
# outcome = "FAIL"
#
# [tool.gridbuf-finding.replays.passes]
# outcome = "PASS"
#
# [tool.gridbuf-finding.runs."mlx-0.32.4"]
# date = "2026-11-25"
# exit = 1
# told = "defect: stream=1 gives <capsule object \"dltensor\" at …> on device (1, 0)"
# ///
"""__dlpack__ of MLX takes stream=1, a CUDA stream, for memory of the CPU"""

import sys

import mlx.core as mx

exporter = mx.zeros((2, 2))
try:
    capsule = exporter.__dlpack__(stream=1)
except (AssertionError, BufferError, RuntimeError, TypeError, ValueError) as error:
    print("refused:", error)
    sys.exit(0)
sys.exit(f"defect: stream=1 gives {capsule} on device {exporter.__dlpack_device__()}")
