# /// script
# requires-python = "==3.12.*"
# dependencies = ["av==19.0.2", "numpy==2.5.5"]
#
# [tool.gridbuf-finding]
# library = "PyAV"
# side = "producer"
# target = "av"
# rule = "DP-15"
# plan = '{"shape":[1,1],"dtype":"uint8"}'
# passes = "numpy-2.5.5"
# passes_target = "numpy"
# why = "On the CPU only stream None is accepted."
# seen = "stream=1 gives a capsule."
# status = "new"
# searched = """\
# 2026-11-23, threads on GitHub: __dlpack__ stream argument on CPU accepted ignored drjit PyAV \
# VideoPlane mlx"""
# ///
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
