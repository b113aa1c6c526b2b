"""A bool OrtValue is exported as uint8."""

import sys

import numpy as np
import onnxruntime

value = onnxruntime.OrtValue.ortvalue_from_numpy(np.array([True, False]))
dtype = np.from_dlpack(value).dtype
sys.exit(f"defect: {value.data_type()} is exported as {dtype}" if dtype.name != "bool" else 0)
