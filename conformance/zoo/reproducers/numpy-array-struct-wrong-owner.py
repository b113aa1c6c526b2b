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
# why = """\
# The array interface's text says of the C struct that the capsule's destructor frees what was \
# made for the access, so the consumer has to keep the capsule. NumPy kept only the object."""
# seen = """\
# A class that makes a temporary for __array_struct__ and frees it in the capsule's destructor: \
# the destructor runs before numpy.asarray returns."""
# status = "fixed"
# fixed_in = "1.26.4"
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
