"""__dlpack__ of tvm_ffi.Tensor takes stream=1, a CUDA stream, for memory of the CPU."""

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
