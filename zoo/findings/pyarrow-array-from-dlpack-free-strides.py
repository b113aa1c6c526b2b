# /// script
# requires-python = "==3.13.*"
# dependencies = ["pyarrow==26.0.1", "numpy==2.5.5"]
#
# [tool.gridbuf-finding]
# library = "PyArrow"
# side = "consumer"
# target = "pyarrow.Array.from_dlpack"
# rule = "DP-33"
# plan = '{"export":"dlpack:junk-strides"}'
# passes = "numpy-2.5.5"
# passes_target = "numpy.from_dlpack"
# severity = "refusal"
# expected = "One element is contiguous, whatever the stride of its axis is."
# impact = "A column of one row has to be copied before it can be imported."
# fix = "In Array.from_dlpack, do not compare the stride of an axis of extent 1."
# status = "new"
# searched = """\
# 2026-11-23, threads on GitHub: pyarrow Array.from_dlpack stride length one non contiguous \
# refused"""
# counter = """\
# No text says that a consumer must accept a tensor. The strides of an axis that no index uses \
# have no meaning, but a clean refusal reads nothing."""
# counter_link = "https://github.com/dmlc/dlpack/blob/v1.3/include/dlpack/dlpack.h#L263-L275"
#
# [tool.gridbuf-finding.releases]
# date = "2026-11-24"
# "does not run" = ["0.9.0", "11.0.0", "14.0.2", "15.0.2", "16.1.0", "17.0.0", "18.0.0", "22.0.0", "24.0.0", "25.0.1"]
# package = "pyarrow"
# python = "3.13"
# listed = 53
# shown = ["26.0.0", "26.0.1"]
#
# [tool.gridbuf-finding.replays.affected]
# actual = "ArrowInvalid: Only contiguous one dimensional tensor can be imported as arrays. Try importing to Tensor first."
# expected = "the array, as from the plain export"
# outcome = "FRAGILE"
#
# [tool.gridbuf-finding.replays.passes]
# outcome = "PASS"
#
# [tool.gridbuf-finding.runs."pyarrow-26.0.1"]
# date = "2026-11-25"
# exit = 1
# told = "defect: Only contiguous one dimensional tensor can be imported as arrays. Try importing to Tensor first."
# ///
"""pyarrow.Array.from_dlpack refuses one element because of the stride of its axis"""

import sys

import numpy as np
import pyarrow

column = np.zeros((1, 5))[:, 0]
print("strides", column.strides, "shape", column.shape, "contiguous", column.flags.c_contiguous)
try:
    pyarrow.Array.from_dlpack(column)
except pyarrow.ArrowInvalid as error:
    sys.exit(f"defect: {error}")
