# /// script
# requires-python = "==3.13.*"
# dependencies = ["numpy==2.5.5"]
#
# [tool.gridbuf-finding]
# library = "NumPy"
# side = "consumer"
# target = "numpy.asarray"
# rule = "PB-35"
# plan = '{"shape":[2],"export":"array-interface:data-object"}'
# also_affected = ["numpy-1.22.0", "numpy-2.2.6"]
# pattern = "released-view"
# severity = "memory"
# expected = """\
# The view of the data object is held as long as the array uses its memory, so extend raises \
# BufferError."""
# impact = """\
# The array points to memory that the bytearray has given back. Reads and writes go to whatever is \
# there now."""
# fix = """\
# Where numpy.asarray takes a data object of __array_interface__, keep the view (a memoryview) as \
# the base of the array, as numpy.frombuffer does."""
# status = "new"
# searched = """\
# 2026-11-23, threads on GitHub: numpy __array_interface__ data buffer object released view \
# bytearray resize; buffer too small; negative offset"""
#
# [tool.gridbuf-finding.releases]
# date = "2026-11-24"
# "does not run" = ["1.3.0", "1.19.2", "1.26.4", "2.0.1", "2.0.2"]
# package = "numpy"
# python = "3.13"
# listed = 127
# shown = ["2.1.0", "2.2.0", "2.3.1", "2.5.5"]
#
# [tool.gridbuf-finding.replays.affected]
# actual = "every view was released, and the result points into the memory"
# expected = "the view is held as long as the result uses its memory"
# outcome = "FAIL"
#
# [tool.gridbuf-finding.runs."numpy-1.22.0"]
# date = "2026-11-25"
# exit = 1
# told = "defect: the bytearray moved under the array"
#
# [tool.gridbuf-finding.runs."numpy-2.2.6"]
# date = "2026-11-25"
# exit = 1
# told = "defect: the bytearray moved under the array"
#
# [tool.gridbuf-finding.runs."numpy-2.5.5"]
# date = "2026-11-25"
# exit = 1
# told = "defect: the bytearray moved under the array"
# ///
"""numpy.asarray releases the view of a data object, and the array still points into its memory"""

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
