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
# severity = "memory"
# expected = "asarray refuses an array of more than B2ND_MAX_DIM dimensions with an error."
# impact = "The process crashes on an array that NumPy allows."
# fix = """\
# In blosc2.asarray, compare the number of dimensions with B2ND_MAX_DIM, and raise ValueError \
# before the shape is copied."""
# source = "b2nd.h of C-Blosc2, B2ND_MAX_DIM"
# source_link = "https://github.com/Blosc/c-blosc2/blob/v2.15.2/include/b2nd.h"
# status = "new"
# searched = "2026-11-24, threads on GitHub: blosc2 asarray many dimensions segfault B2ND_MAX_DIM"
# picture = """
# B2ND_MAX_DIM extents   | 1 | 1 | … | 1 |  not the array's
# 64 extents             | 1 | 1 | … | 1 | 1 | 1 | … | 1 |"""
#
# [tool.gridbuf-finding.releases]
# date = "2026-11-24"
# "does not run" = ["0.1.1", "2.1.1", "2.4.0", "2.5.1"]
# package = "blosc2"
# python = "3.12"
# listed = 103
# shown = ["2.6.0", "2.6.1", "2.7.1", "3.3.1", "4.14.1"]
#
# [tool.gridbuf-finding.replays.affected]
# actual = "the process died by SIGSEGV at step consume, in ndarray.py:6943 asarray"
# expected = "the process answers and lives on"
# outcome = "CRASH"
#
# [tool.gridbuf-finding.replays.passes]
# outcome = "PASS"
#
# [tool.gridbuf-finding.runs."blosc2-4.14.1"]
# date = "2026-11-25"
# exit = 1
# told = "defect: the process died of signal 11"
# ///
"""blosc2.asarray of an array of 64 dimensions ends the process"""

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
