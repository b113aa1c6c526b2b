# /// script
# requires-python = "==3.12.*"
# dependencies = ["gt4py==1.2.3", "dace==2.0.0a10", "numpy==2.5.5"]
#
# [tool.gridbuf-finding]
# library = "GT4Py"
# side = "producer"
# target = "gt4py"
# also_targets = ["gt4py.next"]
# rule = "GT-20"
# plan = '{"shape":[32769,16384],"dtype":"float32","fill":null}'
# also_affected = ["gt4py-1.1.12"]
# passes = "numpy-2.5.5"
# passes_target = "numpy"
# why = "A producer gives what was asked, or declines with a reason."
# seen = "gt4py.storage.empty((32769, 16384), float32): AssertionError."
# status = "new"
# searched = """\
# 2026-11-23, threads on GitHub: gt4py storage allocation int32 overflow large array size out of \
# bounds"""
# counter = """\
# The rule rests on gridbuf's own storage specification, which GT4Py never promised. An \
# assertion is an error, and nothing is allocated."""
# counter_link = "https://github.com/GridTools/gt4py/blob/main/docs/user/cartesian/arrays.rst"
# ///
"""gt4py.storage.empty raises AssertionError where its 32-bit size is negative."""

import sys

import gt4py.storage
import numpy as np

try:
    gt4py.storage.empty((32769, 16384), np.float32, backend="numpy")
except AssertionError:
    sys.exit("defect: AssertionError for 2 GiB")
