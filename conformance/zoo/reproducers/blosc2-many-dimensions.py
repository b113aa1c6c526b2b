# /// script
# requires-python = "==3.12.*"
# dependencies = ["blosc2==4.14.1", "numpy==2.4.6"]
#
# [tool.gridbuf-finding]
# library = "Blosc2"
# side = "consumer"
# target = "zoo/consumers.py:blosc2_array"
# rule = "PB-16"
# plan = '{"export":"buffer:dims-64"}'
# passes = "numpy-2.5.5"
# passes_target = "numpy.asarray"
# why = """\
# A buffer has at most 64 dimensions, and a consumer should be able to handle that many (buffer \
# protocol, PyBUF_MAX_NDIM; PB-16). Arrays of Blosc2 have fewer, so it has to refuse the rest. \
# It does not check the number."""
# seen = "blosc2.asarray(numpy.zeros((1,) * 64)): SIGSEGV."
# status = "new"
# searched = "2026-11-24, threads on GitHub: blosc2 asarray many dimensions segfault B2ND_MAX_DIM"
# picture = """
# B2ND_MAX_DIM extents   | 1 | 1 | … | 1 |  not the array's
# 64 extents             | 1 | 1 | … | 1 | 1 | 1 | … | 1 |"""
# ///
"""blosc2.asarray of an array of 64 dimensions ends the process."""

import subprocess
import sys

import blosc2
import numpy as np

if len(sys.argv) < 2:
    died = subprocess.run([sys.executable, __file__, "child"]).returncode
    sys.exit(f"defect: the process died of signal {-died}" if died < 0 else died)

try:
    blosc2.asarray(np.zeros((1,) * 64))
except (RuntimeError, TypeError, ValueError) as error:
    print("refused:", error)
