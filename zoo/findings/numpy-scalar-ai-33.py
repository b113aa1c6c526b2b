# /// script
# requires-python = "==3.12.*"
# dependencies = ["numpy==2.4.6"]
#
# [tool.gridbuf-finding]
# library = "NumPy"
# side = "producer"
# target = "numpy.scalar"
# rule = "AI-28"
# plan = '{"shape":[],"readonly":true}'
# passes = "numpy-2.5.5"
# severity = "memory"
# expected = "The address in __array_interface__ is valid as long as the scalar lives."
# impact = "A consumer that keeps the scalar and the address, as the text asks, holds freed memory."
# fix = """\
# In __array_interface__ of scalars such as numpy.float64, give the address of the scalar's own \
# value. 2.5.0 does it."""
# status = "fixed"
# fixed_in = "2.5.0"
# tracker = "https://github.com/numpy/numpy/issues/30354"
#
# [tool.gridbuf-finding.releases]
# date = "2026-11-30"
# "does not run" = ["1.3.0", "1.19.0", "1.25.2"]
# gone = ["2.5.0", "2.5.1", "2.5.2", "2.5.5"]
# listed = 129
# package = "numpy"
# python = "3.12"
# series = 7
# shown = ["1.26.0", "1.26.2", "1.26.4", "2.0.1", "2.0.2", "2.1.3", "2.2.2", "2.2.6", "2.3.5", "2.4.6"]
#
# [tool.gridbuf-finding.replays.affected]
# actual = """\
# another value in place of 4.1048022430272647e-215 at element [] as soon as the dict was dropped"""
# expected = "memory that lives with the object"
# outcome = "FAIL"
#
# [tool.gridbuf-finding.replays.passes]
# outcome = "PASS"
#
# [tool.gridbuf-finding.runs."numpy-2.4.6"]
# date = "2026-11-26"
# exit = 1
# told = "defect: the scalar lives, and the memory at its address is freed"
#
# [tool.gridbuf-finding.runs."numpy-2.5.5"]
# date = "2026-11-26"
# exit = 0
# told = ""
# ///
"""__array_interface__ of a NumPy scalar has the address of a temporary that only the dict owns"""

import sys
import weakref

import numpy as np

scalar = np.float64(3)
interface = scalar.__array_interface__
if "__ref" not in interface:  # the owner of the memory, where it is not the scalar
    sys.exit(0)
owner = weakref.ref(interface["__ref"])
del interface
if owner() is None:
    sys.exit("defect: the scalar lives, and the memory at its address is freed")
