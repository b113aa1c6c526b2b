# /// script
# requires-python = "==3.13.*"
# dependencies = ["onnxruntime==1.24.2", "numpy==2.5.5"]
#
# [tool.gridbuf-finding]
# library = "ONNX Runtime"
# side = "consumer"
# target = "onnxruntime.OrtValue.from_dlpack"
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
#
# [tool.gridbuf-finding.releases]
# date = "2026-11-30"
# "does not run" = ["1.20.0", "1.20.1", "1.32.0"]
# gone = ["1.25.0", "1.25.1", "1.26.0", "1.27.0", "1.28.0", "1.29.0", "1.30.0", "1.31.0", "1.31.1"]
# listed = 23
# package = "onnxruntime"
# python = "3.13"
# series = 12
# shown = ["1.21.0", "1.21.1", "1.22.1", "1.23.2", "1.24.2", "1.24.4"]
#
# [tool.gridbuf-finding.replays.affected]
# actual = "RuntimeError: /onnxruntime_src/onnxruntime/core/dlpack/dlpack_converter.cc:242 OrtValue onnxruntime::dlpack::DlpackToOrtValue(DLManage"
# expected = "the array, as from the plain export"
# outcome = "FRAGILE"
#
# [tool.gridbuf-finding.replays.passes]
# outcome = "PASS"
#
# [tool.gridbuf-finding.runs."onnxruntime-1.24.2"]
# date = "2026-11-25"
# exit = 1
# told = "defect: …/dlpack_converter.cc:242 OrtValue onnxruntime::dlpack::DlpackToOrtValue(DLManagedTensor*, bool) IsContiguousTensor(dlpack->dl_tensor) was false. ORT only supports contiguous tensor for now."
#
# [tool.gridbuf-finding.runs."onnxruntime-1.31.1"]
# date = "2026-11-25"
# exit = 0
# told = ""
# ///
"""onnxruntime's OrtValue.from_dlpack refuses a tensor without elements as not contiguous"""

import sys

import numpy as np
from onnxruntime.capi._pybind_state import OrtValue

try:
    OrtValue.from_dlpack(np.zeros((1, 8, 0, 128), "f4").__dlpack__(), False)
except RuntimeError as error:
    sys.exit(f"defect: {error}")
