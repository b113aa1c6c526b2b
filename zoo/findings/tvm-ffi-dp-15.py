# /// script
# requires-python = "==3.12.*"
# dependencies = ["apache-tvm-ffi==0.1.15.post2", "numpy==2.5.5"]
#
# [tool.gridbuf-finding]
# library = "TVM FFI"
# side = "producer"
# target = "tvm_ffi"
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
# In __dlpack__ of tvm_ffi.Tensor, raise BufferError if stream is not None and the tensor is on \
# the CPU."""
# status = "new"
# searched = """\
# 2026-11-23, threads on GitHub: tvm-ffi Tensor __dlpack__ max_version AttributeError; stream \
# argument on CPU"""
#
# [tool.gridbuf-finding.releases]
# date = "2026-11-24"
# package = "apache-tvm-ffi"
# python = "3.12"
# listed = 21
# shown = ["0.1.0", "0.1.15.post2"]
#
# [tool.gridbuf-finding.replays.affected]
# actual = "accepted"
# expected = "an error for stream=1 on the CPU"
# outcome = "FAIL"
#
# [tool.gridbuf-finding.replays.passes]
# outcome = "PASS"
#
# [tool.gridbuf-finding.runs."apache-tvm-ffi-0.1.15.post2"]
# date = "2026-11-25"
# exit = 1
# told = "defect: stream=1 gives <capsule object \"dltensor\" at …> on device (1, 0)"
# ///
"""__dlpack__ of tvm_ffi.Tensor takes stream=1, a CUDA stream, for memory of the CPU"""

import sys

import numpy as np
import tvm_ffi

exporter = tvm_ffi.from_dlpack(np.zeros((2, 2), "f4"))
try:
    capsule = exporter.__dlpack__(stream=1)
except (AssertionError, BufferError, RuntimeError, TypeError, ValueError) as error:
    print("refused:", error)
    sys.exit(0)
sys.exit(f"defect: stream=1 gives {capsule} on device {exporter.__dlpack_device__()}")
