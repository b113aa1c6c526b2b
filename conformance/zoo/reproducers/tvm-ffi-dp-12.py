# /// script
# requires-python = "==3.12.*"
# dependencies = ["apache-tvm-ffi==0.1.15.post2", "numpy==2.5.5"]
#
# [tool.gridbuf-finding]
# library = "TVM FFI"
# side = "producer"
# target = "tvm_ffi"
# rule = "DP-12"
# plan = '{}'
# passes = "numpy-2.5.5"
# passes_target = "numpy"
# why = """\
# A consumer of an older major version gets a legacy capsule or BufferError; tvm_ffi calls a \
# misspelt private method instead."""
# seen = "AttributeError: '_Tensor__ctypes_handle__to_dlpack'."
# status = "new"
# searched = """\
# 2026-11-23, threads on GitHub: tvm-ffi Tensor __dlpack__ max_version AttributeError; stream \
# argument on CPU"""
# counter = "The text only recommends BufferError for a version that the producer does not have."
# counter_link = "https://github.com/data-apis/array-api/blob/2025.12/src/array_api_stubs/_2025_12/array_object.py#L429-L437"
# ///
"""__dlpack__(max_version=(0, 1)) of tvm_ffi.Tensor calls a method that does not exist."""

import sys

import numpy as np
import tvm_ffi

tensor = tvm_ffi.from_dlpack(np.zeros((2, 2), "f4"))
try:
    print(tensor.__dlpack__(max_version=(0, 1)))
except BufferError as error:
    print("refused:", error)
except AttributeError as error:
    sys.exit(f"defect: AttributeError: {error}")
