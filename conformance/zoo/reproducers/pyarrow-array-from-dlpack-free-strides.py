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
# ///
"""pyarrow.Array.from_dlpack refuses one element because of the stride of its axis."""

import sys

import numpy as np
import pyarrow

column = np.zeros((1, 5))[:, 0]
print("strides", column.strides, "shape", column.shape, "contiguous", column.flags.c_contiguous)
try:
    pyarrow.Array.from_dlpack(column)
except pyarrow.ArrowInvalid as error:
    sys.exit(f"defect: {error}")
