"""numpy.ndarray(buffer=…) releases the view, and the array still points into its memory."""

import sys

import numpy as np

memory = bytearray(64)
array = np.ndarray(64, "u1", buffer=memory)
try:
    memory.extend(bytes(10**7))
except BufferError as error:
    print("held:", error)
    sys.exit(0)
moved = np.frombuffer(memory, "u1").ctypes.data != array.ctypes.data
sys.exit("defect: the bytearray moved under the array" if moved else 0)
