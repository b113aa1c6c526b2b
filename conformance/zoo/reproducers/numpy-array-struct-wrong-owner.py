# /// script
# requires-python = "==3.10.*"
# dependencies = ["numpy==1.22.0"]
#
# [tool.gridbuf-finding]
# library = "NumPy"
# side = "consumer"
# target = "numpy.asarray"
# rule = "AS-07"
# plan = '{"export":"array-struct"}'
# passes = "numpy-2.5.5"
# severity = "memory"
# expected = """\
# The array keeps the capsule, which keeps the memory, not only the object that gave it."""
# impact = "The array points into memory that is freed before asarray returns."
# fix = """\
# In numpy.asarray, make the capsule of __array_struct__ the base of the array. 1.23.0 does it."""
# status = "fixed"
# fixed_in = "1.23.0"
# tracker = "https://github.com/numpy/numpy/issues/20673"
# ///
"""numpy.asarray drops the capsule of __array_struct__ while the array points into its memory."""

import sys
import weakref

import numpy as np


class Watched(np.ndarray):
    """An ndarray that weakref can watch."""


class Temporary:
    @property
    def __array_struct__(self):
        made = np.arange(3.0).view(Watched)
        weakref.finalize(made, freed.append, "freed")
        return made.__array_struct__


freed = []
array = np.asarray(Temporary())
sys.exit(f"defect: the memory of an array of {array.size} elements is freed" if freed else 0)
