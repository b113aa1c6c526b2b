"""__dlpack__ of Dr.Jit takes stream=1, a CUDA stream, for memory of the CPU."""

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
