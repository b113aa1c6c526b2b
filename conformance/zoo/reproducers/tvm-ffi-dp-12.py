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
