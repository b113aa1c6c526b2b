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
