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
# ///
"""__dlpack_device__ of a Paddle tensor on the CPU has None for the number of the device."""

import sys

import paddle

device = paddle.zeros([2]).__dlpack_device__()
sys.exit(f"defect: {device} is not a pair of integers" if device[1] is None else 0)
