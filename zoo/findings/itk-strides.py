# /// script
# requires-python = "==3.12.*"
# dependencies = ["itk-core==5.4.7", "numpy==2.4.6"]
#
# [tool.gridbuf-finding]
# library = "ITK"
# side = "consumer"
# target = "zoo/consumers.py:itk_image"
# rule = "AI-22"
# also_rules = ["PB-32", "XA-15", "AS-04"]
# plan = '{"shape":[2,3],"dtype":"float32","layout":[1,0],"export":"array-interface"}'
# passes = "numpy-2.5.5"
# passes_target = "numpy.asarray"
# severity = "values"
# expected = "The image has the shape and the values of the array, or the array is refused."
# impact = """\
# An array in column-major order and its transpose give the same image, so its axes are exchanged."""
# fix = "In image_from_array, copy arrays that are not C-contiguous with numpy.ascontiguousarray."
# source = "NumPy reference, ndarray.strides"
# source_link = "https://numpy.org/doc/2.2/reference/generated/numpy.ndarray.strides.html"
# status = "reported"
# tracker = "https://github.com/InsightSoftwareConsortium/ITK/issues/4329"
# counter = "The docstring announces it: the image of an array and of its transpose is the same."
# counter_link = "https://github.com/InsightSoftwareConsortium/ITK/issues/1243"
#
# [tool.gridbuf-finding.releases]
# date = "2026-11-26"
# package = "itk-core"
# python = "3.12"
# listed = 9
# shown = ["5.4.0", "5.4.7"]
#
# [tool.gridbuf-finding.replays.affected]
# actual = "shape [3, 2]"
# expected = "shape [2, 3]"
# outcome = "FAIL"
#
# [tool.gridbuf-finding.replays.passes]
# outcome = "PASS"
#
# [tool.gridbuf-finding.runs."itk-core-5.4.7"]
# date = "2026-11-25"
# exit = 1
# told = "defect: shape (2, 3) became (3, 2)"
# ///
"""itk.image_from_array gives an array and its transpose the same image"""

import sys

import itk
import numpy as np

source = np.arange(1, 7, dtype="f4").reshape(3, 2).T
try:
    copy = itk.array_from_image(itk.image_from_array(source))
    if copy.shape != source.shape:
        sys.exit(f"defect: shape {source.shape} became {copy.shape}")
except (KeyError, TypeError, ValueError, RuntimeError) as error:
    print("refused:", error)
    sys.exit(0)
sys.exit(f"defect: {source.tolist()} became {copy.tolist()}" if (copy != source).any() else 0)
