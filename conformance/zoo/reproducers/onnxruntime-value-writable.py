"""OrtValue.numpy() is writable over the memory of a read-only array."""

import sys

import numpy as np
import onnxruntime

source = np.ones(4, "f4")
source.flags.writeable = False
value = onnxruntime.OrtValue.ortvalue_from_numpy(source)
try:
    value.numpy()[0] = 2
except ValueError as error:
    print("refused:", error)
    sys.exit(0)
sys.exit(f"defect: a read-only array became {source.tolist()}" if source[0] != 1 else 0)
