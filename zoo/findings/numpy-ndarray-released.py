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
# pattern = "released-view"
# severity = "memory"
# expected = "The view is held as long as the array uses its memory, so extend raises BufferError."
# impact = """\
# The array points to memory that the bytearray has given back. Reads and writes go to whatever is \
# there now."""
# fix = """\
# In numpy.ndarray, keep a memoryview of buffer as the base of the array, as numpy.frombuffer \
# does."""
# status = "reported"
# tracker = "https://github.com/numpy/numpy/issues/15450"
# picture = """
# array = np.ndarray(64, "u1", buffer=memory)   array ——> | memory: 64 bytes |
# memory.extend(bytes(10**7))                   array ——>   given back          | memory: 10 MB |
# array[0] = 1                                  writes to whatever is there now"""
#
# [tool.gridbuf-finding.releases]
# date = "2026-11-30"
# "does not run" = ["1.3.0", "1.19.2", "1.26.4", "2.0.1", "2.0.2"]
# listed = 127
# package = "numpy"
# python = "3.13"
# series = 5
# shown = ["2.1.0", "2.1.3", "2.2.0", "2.2.6", "2.3.1", "2.3.5", "2.4.6", "2.5.5"]
#
# [tool.gridbuf-finding.replays.affected]
# actual = "every view was released, and the result points into the memory"
# expected = "the view is held as long as the result uses its memory"
# outcome = "FAIL"
#
# [tool.gridbuf-finding.replays.passes]
# outcome = "PASS"
#
# [tool.gridbuf-finding.runs."numpy-2.5.5"]
# date = "2026-11-25"
# exit = 1
# told = "defect: the bytearray moved under the array"
# ///
"""numpy.ndarray(buffer=…) releases the view, and the array still points into its memory"""

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
