# /// script
# requires-python = "==3.12.*"
# dependencies = ["paddlepaddle==3.3.1"]
#
# [tool.gridbuf-finding]
# library = "PaddlePaddle"
# side = "producer"
# target = "paddle"
# rule = "DP-02"
# plan = '{}'
# passes = "numpy-2.5.5"
# passes_target = "numpy"
# severity = "form"
# expected = "__dlpack_device__ returns two integers, here (1, 0)."
# impact = "A consumer that compares or converts the number of the device gets None."
# fix = "In __dlpack_device__ of a paddle tensor on the CPU, return 0 for the number of the device."
# status = "reported"
# tracker = "https://github.com/PaddlePaddle/Paddle/pull/69632"
#
# [tool.gridbuf-finding.releases]
# date = "2026-11-24"
# "does not run" = ["2.6.2", "3.2.0", "3.2.2"]
# package = "paddlepaddle"
# python = "3.12"
# listed = 9
# shown = ["3.3.0", "3.3.1"]
#
# [tool.gridbuf-finding.replays.affected]
# actual = "(a DLDeviceType, None)"
# expected = "a tuple of two ints"
# outcome = "FAIL"
#
# [tool.gridbuf-finding.replays.passes]
# outcome = "PASS"
#
# [tool.gridbuf-finding.runs."paddlepaddle-3.3.1"]
# date = "2026-11-25"
# exit = 1
# told = "defect: (<DLDeviceType.kDLCPU: 1>, None) is not a pair of integers"
# ///
"""__dlpack_device__ of a Paddle tensor on the CPU has None for the number of the device"""

import sys

import paddle

device = paddle.zeros([2]).__dlpack_device__()
sys.exit(f"defect: {device} is not a pair of integers" if device[1] is None else 0)
