"""__dlpack_device__ of a Paddle tensor on the CPU has None for the number of the device."""

import sys

import paddle

device = paddle.zeros([2]).__dlpack_device__()
sys.exit(f"defect: {device} is not a pair of integers" if device[1] is None else 0)
