"""An array of float8_e5m2 has the typestr '<f1'."""

import sys

import ml_dtypes
import numpy as np

typestr = np.zeros(2, ml_dtypes.float8_e5m2).__array_interface__["typestr"]
try:
    np.dtype(typestr)
except TypeError as error:
    sys.exit(f"defect: typestr {typestr!r}: {error}")
