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
# pattern = "released-view"
# severity = "memory"
# expected = "The matrix keeps the array, or a copy of it, as long as it points into its memory."
# impact = """\
# The matrix reads freed memory as soon as nothing else refers to the array. Here the process \
# crashes."""
# fix = """\
# In the constructor of ncnn.Mat from a buffer, keep the py::buffer_info and its object in the \
# matrix, or clone the data."""
# status = "new"
# searched = """\
# 2026-11-24, threads on GitHub: ncnn python Mat numpy non-contiguous array strides wrong data \
# buffer released"""
# picture = """
# matrix = ncnn.Mat(array)       matrix ——> | array: 64 MiB |
# nothing else holds the array   matrix ——> not mapped
# first element of matrix        the process ends"""
#
# [tool.gridbuf-finding.releases]
# date = "2026-11-30"
# "does not run" = ["1.0.20210525", "1.0.20230517"]
# listed = 24
# package = "ncnn"
# python = "3.12"
# series = 1
# shown = ["1.0.20230816", "1.0.20240102", "1.0.20241226", "1.0.20261020"]
#
# [tool.gridbuf-finding.replays.affected]
# actual = "every view was released, and the result points into the memory"
# expected = "the view is held as long as the result uses its memory"
# outcome = "FAIL"
#
# [tool.gridbuf-finding.replays.passes]
# outcome = "PASS"
#
# [tool.gridbuf-finding.runs."ncnn-1.0.20261020"]
# date = "2026-11-26"
# exit = 1
# told = "defect: the process died of signal 11"
# ///
"""ncnn.Mat keeps neither the buffer that it is made of nor its object, and points into freed memory"""

import subprocess
import sys

import ncnn
import numpy as np

if len(sys.argv) < 2:
    died = subprocess.run([sys.executable, __file__, "child"]).returncode
    sys.exit(f"defect: the process died of signal {-died}" if died < 0 else 2 * bool(died))

matrix = ncnn.Mat(np.ones((4096, 4096), "f4"))  # nothing else refers to the array of 64 MiB
print("a matrix of", matrix.h, "rows; reading it", flush=True)
print("the first element is", np.asarray(matrix)[0, 0])
