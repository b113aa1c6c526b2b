"""numpy.asarray takes a data object whose buffer is smaller than the array, and an offset before it."""

import sys

import numpy as np


class Exporter:
    def __init__(self, **more):
        self.__array_interface__ = {"version": 3, "typestr": "<i8", "data": bytearray(8), **more}


taken = []
for more in ({"shape": (4,)}, {"shape": (1,), "offset": -64}):
    try:
        taken.append(np.asarray(Exporter(**more)).tolist())
    except (ValueError, BufferError) as error:
        print("refused:", error)
sys.exit(f"defect: numbers from outside of 8 bytes: {taken}" if taken else 0)
