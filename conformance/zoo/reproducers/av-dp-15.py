"""VideoPlane.__dlpack__ of PyAV takes stream=1, a CUDA stream, for memory of the CPU."""

import sys

import av

exporter = av.VideoFrame(16, 8, "gray").planes[0]
try:
    capsule = exporter.__dlpack__(stream=1)
except (AssertionError, BufferError, RuntimeError, TypeError, ValueError) as error:
    print("refused:", error)
    sys.exit(0)
sys.exit(f"defect: stream=1 gives {capsule} on device {exporter.__dlpack_device__()}")
