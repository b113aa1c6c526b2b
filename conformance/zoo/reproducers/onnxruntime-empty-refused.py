# /// script
# requires-python = "==3.13.*"
# dependencies = ["onnxruntime==1.24.2", "numpy==2.5.5"]
#
# [tool.gridbuf-finding]
# library = "ONNX Runtime"
# side = "consumer"
# target = "zoo/consumers.py:onnxruntime_from_dlpack"
# rule = "DP-33"
# plan = '{"shape":[2,0,3],"dtype":"float32","export":"dlpack:junk-strides"}'
# passes = "onnxruntime-1.31.1"
# severity = "refusal"
# expected = "A tensor without elements is contiguous, whatever its strides are."
# impact = "Arrays without elements cannot be imported."
# fix = """\
# In IsContiguousTensor, which from_dlpack calls, accept a tensor that has an extent of 0. 1.25.0 \
# does it."""
# status = "fixed"
# fixed_in = "1.25.0"
# tracker = "https://github.com/microsoft/onnxruntime/issues/27450"
# counter = """\
# No text says that a consumer must accept a tensor. The strides of an axis that no index uses \
# have no meaning, but a clean refusal reads nothing."""
# counter_link = "https://github.com/dmlc/dlpack/blob/v1.3/include/dlpack/dlpack.h#L263-L275"
# ///
"""OrtValue.from_dlpack refuses a tensor without elements as not contiguous."""

import sys

import numpy as np
from onnxruntime.capi._pybind_state import OrtValue

try:
    OrtValue.from_dlpack(np.zeros((1, 8, 0, 128), "f4").__dlpack__(), False)
except RuntimeError as error:
    sys.exit(f"defect: {error}")
