"""OrtValue.from_dlpack refuses a tensor without elements as not contiguous."""

import sys

import numpy as np
from onnxruntime.capi._pybind_state import OrtValue

try:
    OrtValue.from_dlpack(np.zeros((1, 8, 0, 128), "f4").__dlpack__(), False)
except RuntimeError as error:
    sys.exit(f"defect: {error}")
