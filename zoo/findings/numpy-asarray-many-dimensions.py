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
# severity = "memory"
# expected = "A shape of 1000 dimensions is refused with ValueError."
# impact = "The process crashes when asarray copies the shape."
# fix = """\
# In numpy.asarray, compare the length of shape with the largest number of dimensions before it is \
# copied. 2.2.4 does it."""
# status = "fixed"
# fixed_in = "2.2.4"
# tracker = "https://github.com/numpy/numpy/issues/27949"
#
# [tool.gridbuf-finding.releases]
# date = "2026-11-30"
# "does not run" = ["1.3.0", "1.18.0", "1.20.2", "1.21.1"]
# gone = ["2.2.4", "2.2.6"]
# listed = 116
# package = "numpy"
# python = "3.10"
# series = 9
# shown = ["1.21.2", "1.21.3", "1.21.5", "1.21.6", "1.22.4", "1.23.0", "1.23.5", "1.24.4", "1.25.2", "1.26.4", "2.0.2", "2.1.3", "2.2.2", "2.2.3"]
#
# [tool.gridbuf-finding.replays.affected]
# actual = "the process died by SIGSEGV at step consume"
# expected = "the process answers and lives on"
# outcome = "CRASH"
#
# [tool.gridbuf-finding.replays.passes]
# note = "refused: ValueError"
# outcome = "PASS"
#
# [tool.gridbuf-finding.runs."numpy-1.22.0"]
# date = "2026-11-25"
# exit = 1
# told = "defect: the process died of signal 11"
#
# [tool.gridbuf-finding.runs."numpy-1.26.4"]
# date = "2026-11-25"
# exit = 1
# told = "defect: the process died of signal 11"
#
# [tool.gridbuf-finding.runs."numpy-2.2.2"]
# date = "2026-11-25"
# exit = 1
# told = "defect: the process died of signal 11"
#
# [tool.gridbuf-finding.runs."numpy-2.5.5"]
# date = "2026-11-25"
# exit = 0
# told = "refused: number of dimensions must be within [0, 64], got 1000"
# ///
"""numpy.asarray writes a shape of 1000 dimensions past a fixed array"""

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
