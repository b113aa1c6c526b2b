# /// script
# requires-python = "==3.13.*"
# dependencies = ["numpy==2.5.5"]
#
# [tool.gridbuf-finding]
# library = "NumPy"
# side = "consumer"
# target = "zoo/consumers.py:numpy_ndarray"
# rule = "PB-35"
# plan = '{"dtype":"uint8","export":"buffer"}'
# passes = "cpython-3.13.0"
# passes_target = "memoryview"
# why = """\
# buf may be used until PyBuffer_Release, not after: an exporter that can resize is free to move \
# its memory then (PB-35). NumPy keeps the object, but not the view."""
# seen = """\
# numpy.ndarray(64, "u1", buffer=bytearray(64)); the bytearray can then be extended, which moves \
# its memory under the array."""
# status = "reported"
# tracker = "https://github.com/numpy/numpy/issues/15450"
# ///
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
