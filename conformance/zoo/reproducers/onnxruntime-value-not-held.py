"""The array of OrtValue.numpy() points into memory that nothing holds."""

import sys
import weakref

import numpy as np
import onnxruntime

source = np.ones(10**6, "f4")
address, alive = source.ctypes.data, weakref.ref(source)
value = onnxruntime.OrtValue.ortvalue_from_numpy(source)
array = value.numpy()
shared = array.ctypes.data == address
del source, value
sys.exit("defect: the memory of the array was freed" if shared and alive() is None else 0)
