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
#
# [tool.gridbuf-finding.releases]
# date = "2026-11-30"
# "does not run" = ["1.3.0", "1.15.2", "1.18.3", "1.20.1", "1.20.3", "1.21.0", "1.21.1"]
# gone = ["1.23.0", "1.23.5", "1.24.4", "1.25.2", "1.26.0", "1.26.4", "2.0.2", "2.1.3", "2.2.6"]
# listed = 116
# package = "numpy"
# python = "3.10"
# series = 9
# shown = ["1.21.2", "1.21.6", "1.22.0", "1.22.3", "1.22.4"]
#
# [tool.gridbuf-finding.replays.affected]
# actual = "the memory was given back while the result points into it"
# expected = "the capsule is held as long as the result lives"
# outcome = "FAIL"
#
# [tool.gridbuf-finding.replays.passes]
# outcome = "PASS"
#
# [tool.gridbuf-finding.runs."numpy-1.22.0"]
# date = "2026-11-25"
# exit = 1
# told = "defect: the memory of an array of 3 elements is freed"
#
# [tool.gridbuf-finding.runs."numpy-2.5.5"]
# date = "2026-11-25"
# exit = 0
# told = ""
# ///
"""numpy.asarray drops the capsule of __array_struct__ while the array points into its memory"""

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
