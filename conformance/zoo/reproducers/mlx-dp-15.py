"""__dlpack__ of MLX takes stream=1, a CUDA stream, for memory of the CPU."""

import sys

import mlx.core as mx

exporter = mx.zeros((2, 2))
try:
    capsule = exporter.__dlpack__(stream=1)
except (AssertionError, BufferError, RuntimeError, TypeError, ValueError) as error:
    print("refused:", error)
    sys.exit(0)
sys.exit(f"defect: stream=1 gives {capsule} on device {exporter.__dlpack_device__()}")
