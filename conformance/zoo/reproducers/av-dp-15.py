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
# severity = "form"
# expected = "On the CPU only stream None is accepted, so stream=1 is an error."
# impact = """\
# A caller that passes a CUDA stream to an array of the CPU by mistake does not notice it. The \
# capsule of the plane is not wrong in itself."""
# fix = """\
# In VideoPlane.__dlpack__, raise BufferError if stream is not None and the plane is in memory of \
# the CPU (device type 1)."""
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
