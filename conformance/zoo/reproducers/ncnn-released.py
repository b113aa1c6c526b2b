# /// script
# requires-python = "==3.12.*"
# dependencies = ["ncnn==1.0.20261020", "numpy==2.4.6"]
#
# [tool.gridbuf-finding]
# library = "ncnn"
# side = "consumer"
# target = "zoo/consumers.py:ncnn_mat"
# rule = "PB-35"
# plan = '{"dtype":"float32","export":"buffer"}'
# passes = "cpython-3.13.0"
# passes_target = "memoryview"
# why = """\
# buf may be used until PyBuffer_Release, not after: an exporter that can resize is free to move \
# its memory then (PB-35). The matrix keeps neither the view nor the object."""
# seen = """\
# ncnn.Mat of an array.array; the array can then be extended, which moves its memory under the \
# matrix."""
# status = "new"
# searched = """\
# 2026-11-24, threads on GitHub: ncnn python Mat numpy non-contiguous array strides wrong data \
# buffer released"""
# ///
"""ncnn.Mat releases the view of a buffer, and still points into its memory."""

import array
import sys

import ncnn
import numpy as np

memory = array.array("f", [1.0] * 16)
matrix = ncnn.Mat(memory)
try:
    memory.extend([2.0] * 10**6)
except BufferError as error:
    print("held:", error)
    sys.exit(0)
moved = np.frombuffer(memory, "f4").ctypes.data != np.asarray(matrix).ctypes.data
sys.exit("defect: the memory moved under the matrix" if moved else 0)
