# /// script
# requires-python = "==3.13.*"
# dependencies = ["numpy==2.5.5"]
#
# [tool.gridbuf-finding]
# library = "NumPy"
# side = "producer"
# target = "numpy.references"
# rule = "AI-06"
# also_rules = ["AS-03"]
# plan = '{"dtype":"str3"}'
# also_affected = ["numpy-2.4.6", "numpy-2.2.6", "numpy-2.2.2"]
# severity = "form"
# expected = """\
# The attribute raises AttributeError: no letter of typestr describes references to strings."""
# impact = """\
# A consumer cannot read the elements. It can tell that only if it refuses the unknown typestr."""
# fix = """\
# In __array_interface__ and __array_struct__ of arrays of StringDType, raise AttributeError, so \
# that consumers use another interface."""
# status = "new"
# searched = """\
# 2026-11-25, threads on GitHub: numpy StringDType __array_interface__ typestr '|T16' buffer \
# export"""
#
# [tool.gridbuf-finding.releases]
# date = "2026-11-26"
# "does not run" = ["1.3.0", "1.19.2", "1.26.4", "2.0.1", "2.0.2"]
# package = "numpy"
# python = "3.13"
# listed = 127
# shown = ["2.1.0", "2.2.0", "2.3.1", "2.5.5"]
#
# [tool.gridbuf-finding.replays.affected]
# actual = "'StringDType()' is not one byte-order character (<, > or |), one kind letter of tbiufcmMOSUV, and digits"
# expected = "byte order, kind letter, digits: '<f8'"
# outcome = "FAIL"
#
# [tool.gridbuf-finding.runs."numpy-2.2.2"]
# date = "2026-11-25"
# exit = 1
# told = "defect: typestr '|T16' has no byte order and no kind"
#
# [tool.gridbuf-finding.runs."numpy-2.2.6"]
# date = "2026-11-25"
# exit = 1
# told = "defect: typestr '|T16' has no byte order and no kind"
#
# [tool.gridbuf-finding.runs."numpy-2.4.6"]
# date = "2026-11-25"
# exit = 1
# told = "defect: typestr 'StringDType()' has no byte order and no kind"
#
# [tool.gridbuf-finding.runs."numpy-2.5.5"]
# date = "2026-11-25"
# exit = 1
# told = "defect: typestr 'StringDType()' has no byte order and no kind"
# ///
"""The array interface of NumPy's StringDType arrays has an invalid typestr, and the address of references"""

import sys

import numpy as np

strings = np.array(["a", "b"], np.dtypes.StringDType())
try:
    typestr = strings.__array_interface__["typestr"]
except (AttributeError, TypeError, ValueError):
    sys.exit(0)
if typestr[0] not in "<>|" or typestr[1] not in "tbiufcmMOSUV":
    sys.exit(f"defect: typestr {typestr!r} has no byte order and no kind")
