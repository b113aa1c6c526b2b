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
#
# [tool.gridbuf-finding.releases]
# date = "2026-11-24"
# "does not run" = ["0.1.0", "9.0.2", "14.1.0", "16.1.0"]
# gone = ["17.0.1", "17.1.0"]
# package = "av"
# python = "3.12"
# listed = 59
# shown = ["18.0.0", "19.0.2"]
#
# [tool.gridbuf-finding.replays.affected]
# actual = "accepted"
# expected = "an error for stream=1 on the CPU"
# outcome = "FAIL"
#
# [tool.gridbuf-finding.replays.passes]
# outcome = "PASS"
#
# [tool.gridbuf-finding.runs."av-19.0.2"]
# date = "2026-11-25"
# exit = 1
# told = "defect: stream=1 gives <capsule object \"dltensor\" at …> on device (1, 0)"
# ///
"""__dlpack__ of PyAV's VideoPlane takes stream=1, a CUDA stream, for memory of the CPU"""

import sys

import av

exporter = av.VideoFrame(16, 8, "gray").planes[0]
try:
    capsule = exporter.__dlpack__(stream=1)
except (AssertionError, BufferError, RuntimeError, TypeError, ValueError) as error:
    print("refused:", error)
    sys.exit(0)
sys.exit(f"defect: stream=1 gives {capsule} on device {exporter.__dlpack_device__()}")
