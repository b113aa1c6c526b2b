# /// script
# requires-python = "==3.12.*"
# dependencies = ["opencv-python-headless==5.0.0.93", "numpy==2.4.6"]
#
# [tool.gridbuf-finding]
# library = "OpenCV"
# side = "consumer"
# target = "zoo/consumers.py:opencv_copied"
# rule = "AI-34"
# also_rules = ["AS-05", "PB-20"]
# plan = '{"dtype":"float32","byteorder":"swapped","export":"array-interface"}'
# passes = "numpy-2.5.5"
# passes_target = "numpy.asarray"
# pattern = "byte-order"
# severity = "values"
# expected = """\
# The result is [[0.0, 1.0], [2.0, 3.0]], or the array is refused. Code that reads the data of a \
# NumPy array has to respect its byte order."""
# impact = """\
# The array that cv2.copyTo returns has other numbers than the caller gave, and no error says so."""
# fix = """\
# Where cv2 converts a NumPy array for copyTo and other functions, test PyArray_ISNOTSWAPPED. \
# Convert the array, as is done for strides that do not fit, or raise cv2.error."""
# source = "NumPy C API, Data access"
# source_link = "https://numpy.org/doc/2.2/reference/c-api/array.html#data-access"
# status = "new"
# searched = """\
# 2026-11-23, threads on GitHub: opencv python big-endian numpy array byte order wrong values \
# cv2"""
#
# [tool.gridbuf-finding.releases]
# date = "2026-11-24"
# "does not run" = ["3.4.10.37", "4.5.4.60", "4.10.0.82"]
# package = "opencv-python-headless"
# python = "3.12"
# listed = 29
# shown = ["4.10.0.84", "4.12.0.88", "5.0.0.93"]
#
# [tool.gridbuf-finding.replays.affected]
# actual = "1.5307832628951474e-37"
# expected = "6.474403375969398e-37 at element [0]"
# outcome = "FAIL"
#
# [tool.gridbuf-finding.replays.passes]
# outcome = "PASS"
#
# [tool.gridbuf-finding.runs."opencv-python-headless-5.0.0.93"]
# date = "2026-11-25"
# exit = 1
# told = "defect: [[0.0, 1.0], [2.0, 3.0]] became [[0.0, 4.600602988224807e-41], [8.96831017167883e-44, 2.304855714121459e-41]]"
# ///
"""cv2 reads big-endian arrays as little-endian ones"""

import sys

import cv2
import numpy as np

source = np.arange(4, dtype=">f4").reshape(2, 2)
try:
    copy = cv2.copyTo(source, None)
except (TypeError, cv2.error) as error:
    print("refused:", error)
    sys.exit(0)
sys.exit(f"defect: {source.tolist()} became {copy.tolist()}" if (copy != source).any() else 0)
