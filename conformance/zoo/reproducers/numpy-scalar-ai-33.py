# /// script
# requires-python = "==3.12.*"
# dependencies = ["numpy==2.4.6"]
#
# [tool.gridbuf-finding]
# library = "NumPy"
# side = "producer"
# target = "numpy.scalar"
# rule = "AI-33"
# plan = '{"shape":[],"readonly":true}'
# passes = "numpy-2.5.5"
# why = """\
# Each access has another address; a consumer that keeps the scalar, as the text asks, holds \
# freed memory."""
# seen = "Two accesses, two addresses; the dict has a key __ref with the temporary."
# status = "fixed"
# fixed_in = "2.5.5"
# tracker = "https://github.com/numpy/numpy/issues/30354"
# ///
"""__array_interface__ of a NumPy scalar has the address of a temporary that only the dict owns."""

import sys

import numpy as np

scalar = np.float64(3)
first, second = scalar.__array_interface__, scalar.__array_interface__
addresses = {first["data"][0], second["data"][0]}
sys.exit("defect: two accesses, two addresses" if len(addresses) == 2 else 0)
