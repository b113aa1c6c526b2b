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
# why = """\
# typestr is a byte order, a letter for the kind and a number (array interface, typestr); the \
# struct has one of these letters. The elements are references to NumPy's own memory, which no \
# letter describes: the attribute must raise AttributeError. The buffer protocol and DLPack \
# refuse such arrays."""
# seen = """\
# np.array(['a'], np.dtypes.StringDType()).__array_interface__['typestr'] is 'StringDType()'; \
# __array_struct__ has kind 'T'."""
# status = "new"
# searched = """\
# 2026-11-25, threads on GitHub: numpy StringDType __array_interface__ typestr '|T16' buffer \
# export"""
# ///
"""The array interface of a StringDType array has an invalid typestr, and the address of references."""

import sys

import numpy as np

strings = np.array(["a", "b"], np.dtypes.StringDType())
try:
    typestr = strings.__array_interface__["typestr"]
except (AttributeError, TypeError, ValueError):
    sys.exit(0)
if typestr[0] not in "<>|" or typestr[1] not in "tbiufcmMOSUV":
    sys.exit(f"defect: typestr {typestr!r} has no byte order and no kind")
