"""The array interface of an array of strings has a typestr that is none, and the address of references."""

import sys

import numpy as np

strings = np.array(["a", "b"], np.dtypes.StringDType())
try:
    typestr = strings.__array_interface__["typestr"]
except (AttributeError, TypeError, ValueError):
    sys.exit(0)
if typestr[0] not in "<>|" or typestr[1] not in "tbiufcmMOSUV":
    sys.exit(f"defect: typestr {typestr!r} has no byte order and no kind")
