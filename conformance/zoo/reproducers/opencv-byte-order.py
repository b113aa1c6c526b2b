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
# why = """\
# The first character of typestr is the byte order: a consumer uses it or refuses the array \
# (AI-34). cv2 looks at the kind and the size of a NumPy array's type, and does not convert the \
# bytes."""
# seen = "[0.0, 1.0] as '>f4' becomes [0.0, 4.6e-41], without an error."
# status = "new"
# searched = """\
# 2026-11-23, threads on GitHub: opencv python big-endian numpy array byte order wrong values \
# cv2"""
# ///
"""cv2 reads big-endian arrays as little-endian ones."""

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
