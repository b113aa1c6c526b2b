"""gt4py.storage.empty raises AssertionError where its 32-bit size is negative."""

import sys

import gt4py.storage
import numpy as np

try:
    gt4py.storage.empty((32769, 16384), np.float32, backend="numpy")
except AssertionError:
    sys.exit("defect: AssertionError for 2 GiB")
