# /// script
# requires-python = "==3.13.*"
# dependencies = ["numpy==2.5.5"]
#
# [tool.gridbuf-finding]
# library = "NumPy"
# side = "consumer"
# target = "numpy.asarray"
# rule = "AI-16"
# also_rules = ["AI-18"]
# plan = '{"shape":[2],"export":"array-interface:data-object-too-small"}'
# also_affected = ["numpy-1.22.0", "numpy-2.2.6"]
# why = """\
# The array interface says of data that is an object: its buffer is the memory of the array. \
# NumPy does not compare size and offset with the buffer."""
# seen = """\
# numpy.asarray of an object with shape (4,), typestr '<i8', data=bytearray(8) gives four \
# numbers, three of them from memory outside of it."""
# status = "new"
# searched = """\
# 2026-11-23, threads on GitHub: numpy __array_interface__ data buffer object released view \
# bytearray resize; buffer too small; negative offset"""
# counter = """\
# No text asks a consumer to check the size of the buffer: a description of more memory than \
# there is breaks the producer's side of AI-16 and AI-18."""
# counter_link = "https://numpy.org/doc/stable/reference/arrays.interface.html#object.__array_interface__"
# ///
"""numpy.asarray accepts a data object whose buffer is smaller than the array, and an offset before it."""

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
