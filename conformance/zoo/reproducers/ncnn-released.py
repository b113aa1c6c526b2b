"""ncnn.Mat releases the view of a buffer, and still points into its memory."""

import array
import sys

import ncnn
import numpy as np

memory = array.array("f", [1.0] * 16)
matrix = ncnn.Mat(memory)
try:
    memory.extend([2.0] * 10**6)
except BufferError as error:
    print("held:", error)
    sys.exit(0)
moved = np.frombuffer(memory, "f4").ctypes.data != np.asarray(matrix).ctypes.data
sys.exit("defect: the memory moved under the matrix" if moved else 0)
