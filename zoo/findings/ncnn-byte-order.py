# /// script
# requires-python = "==3.12.*"
# dependencies = ["ncnn==1.0.20261020", "numpy==2.4.6"]
#
# [tool.gridbuf-finding]
# library = "ncnn"
# side = "consumer"
# target = "zoo/consumers.py:ncnn_mat"
# rule = "PB-20"
# plan = '{"dtype":"float32","byteorder":"swapped","export":"buffer"}'
# passes = "numpy-2.5.5"
# passes_target = "numpy.asarray"
# pattern = "byte-order"
# severity = "values"
# expected = """\
# The result is [1.0, 2.0, 3.0, 4.0], or the array is refused. The first character of a buffer's \
# format is its byte order."""
# impact = "The matrix has other numbers than the caller gave, and no error says so."
# fix = """\
# In the constructor of Mat from a buffer, refuse formats that begin with '>' or '!' on a \
# little-endian machine."""
# status = "new"
# searched = """\
# 2026-11-24, threads on GitHub: ncnn python Mat numpy non-contiguous array strides wrong data \
# buffer released"""
#
# [tool.gridbuf-finding.releases]
# date = "2026-11-24"
# "does not run" = ["1.0.20210525", "1.0.20230517"]
# package = "ncnn"
# python = "3.12"
# listed = 24
# shown = ["1.0.20230816", "1.0.20240102", "1.0.20241226", "1.0.20261020"]
#
# [tool.gridbuf-finding.replays.affected]
# actual = "1.5307832628951474e-37"
# expected = "6.474403375969398e-37 at element [0]"
# outcome = "FAIL"
#
# [tool.gridbuf-finding.replays.passes]
# outcome = "PASS"
#
# [tool.gridbuf-finding.runs."ncnn-1.0.20261020"]
# date = "2026-11-25"
# exit = 1
# told = "defect: [1.0, 2.0, 3.0, 4.0] became [4.600602988224807e-41, 8.96831017167883e-44, 2.304855714121459e-41, 4.600743118071239e-41]"
# ///
"""ncnn.Mat(buffer) reads big-endian numbers as little-endian ones"""

import sys

import ncnn
import numpy as np

source = np.arange(1, 5, dtype=">f4")
try:
    copy = np.array(ncnn.Mat(source))
except (TypeError, ValueError, RuntimeError) as error:
    print("refused:", error)
    sys.exit(0)
sys.exit(f"defect: {source.tolist()} became {copy.tolist()}" if (copy != source).any() else 0)
