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
# why = """\
# The stride of an axis of extent 1 is never multiplied with anything but 0; DLPack, NumPy and \
# the array API let it have any value, and producers use other values (a column of a one-row \
# matrix has the row's length)."""
# seen = """\
# pyarrow.Array.from_dlpack(numpy.zeros((1, 5))[:, 0]), and a hand-written capsule of shape (1,) \
# with strides (99,) are refused with 'Only contiguous one dimensional tensor can be imported as \
# arrays'; with strides (1,) it is taken. Tensor.from_dlpack takes both."""
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
