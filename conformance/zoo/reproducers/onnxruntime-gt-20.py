# /// script
# requires-python = "==3.12.*"
# dependencies = ["onnxruntime==1.31.1", "numpy==2.5.5"]
#
# [tool.gridbuf-finding]
# library = "ONNX Runtime"
# side = "producer"
# target = "onnxruntime"
# rule = "GT-20"
# plan = '{"dtype":"bool"}'
# passes = "numpy-2.5.5"
# passes_target = "numpy"
# why = """\
# DLPack has kDLBool (6, 8 bits) since 0.8; the element type is lost: numpy.from_dlpack gives \
# uint8."""
# seen = "Tensor(bool) comes out as uint8."
# status = "new"
# searched = """\
# 2026-11-23, threads on GitHub: onnxruntime OrtValue from_dlpack byte_offset ignored NULL \
# deleter crash"""
# counter = """\
# The rule rests on gridbuf's own storage specification. The Python API documents the \
# substitution: from_dlpack has the argument is_bool_tensor, which the maintainers plan to \
# remove."""
# counter_link = "https://github.com/microsoft/onnxruntime/issues/24095"
# ///
"""A bool OrtValue is exported as uint8."""

import sys

import numpy as np
import onnxruntime

value = onnxruntime.OrtValue.ortvalue_from_numpy(np.array([True, False]))
dtype = np.from_dlpack(value).dtype
sys.exit(f"defect: {value.data_type()} is exported as {dtype}" if dtype.name != "bool" else 0)
