"""__array_interface__ of a NumPy scalar has the address of a temporary that only the dict owns."""

import sys

import numpy as np

scalar = np.float64(3)
first, second = scalar.__array_interface__, scalar.__array_interface__
addresses = {first["data"][0], second["data"][0]}
sys.exit("defect: two accesses, two addresses" if len(addresses) == 2 else 0)
