"""numpy.asarray releases the view of a data object, and the array still points into its memory."""

import sys

import numpy as np


class Exporter:
    memory = bytearray(64)
    __array_interface__ = {"version": 3, "shape": (64,), "typestr": "|u1", "data": memory}


array = np.asarray(Exporter())
try:
    Exporter.memory.extend(bytes(10**7))
except BufferError as error:
    print("held:", error)
    sys.exit(0)
moved = np.frombuffer(Exporter.memory, "u1").ctypes.data != array.ctypes.data
sys.exit("defect: the bytearray moved under the array" if moved else 0)
