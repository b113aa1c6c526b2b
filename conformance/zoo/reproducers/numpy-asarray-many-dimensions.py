# /// script
# requires-python = "==3.10.*"
# dependencies = ["numpy==2.2.2"]
#
# [tool.gridbuf-finding]
# library = "NumPy"
# side = "consumer"
# target = "numpy.asarray"
# rule = "AI-04"
# plan = '{"export":"array-interface:dims-1000"}'
# also_affected = ["numpy-1.22.0", "numpy-1.26.4"]
# passes = "numpy-2.5.5"
# why = """\
# NumPy's arrays have 64 dimensions at most (32 before 2.0), so it has to refuse more; it copied \
# the shape before it looked at its length."""
# seen = """\
# An object whose __array_interface__ has shape (1,) * 1000, given to numpy.asarray: SIGSEGV in \
# 2.2.2, ValueError in 2.2.6."""
# status = "fixed"
# fixed_in = "2.2.6"
# tracker = "https://github.com/numpy/numpy/issues/27949"
# ///
"""numpy.asarray writes a shape of 1000 dimensions past a fixed array."""

import subprocess
import sys

import numpy as np

if len(sys.argv) < 2:
    died = subprocess.run([sys.executable, __file__, "child"]).returncode
    sys.exit(f"defect: the process died of signal {-died}" if died < 0 else 2 * bool(died))


class Wide:
    memory = np.zeros(1)
    __array_interface__ = dict(memory.__array_interface__, shape=(1,) * 1000)


try:
    np.asarray(Wide())
except ValueError as error:
    print("refused:", error)
