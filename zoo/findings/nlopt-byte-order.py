# /// script
# requires-python = "==3.12.*"
# dependencies = ["nlopt==2.11.0", "numpy==2.4.6"]
#
# [tool.gridbuf-finding]
# library = "NLopt"
# side = "consumer"
# target = "zoo/consumers.py:nlopt_bounds"
# rule = "AI-34"
# also_rules = ["PB-20"]
# plan = '{"dtype":"float64","byteorder":"swapped","export":"array-interface"}'
# passes = "numpy-2.5.5"
# passes_target = "numpy.asarray"
# pattern = "byte-order"
# severity = "values"
# expected = """\
# The result is [1.0, 2.0, 3.0, 4.0], or the array is refused. Code that reads the data of a NumPy \
# array has to respect its byte order."""
# impact = "The list of bounds has other numbers than the caller gave, and no error says so."
# fix = """\
# In the generated wrapper of set_lower_bounds and its siblings, test PyArray_ISNOTSWAPPED with \
# the type number, and convert the array if it fails."""
# source = "NumPy C API, Data access"
# source_link = "https://numpy.org/doc/2.2/reference/c-api/array.html#data-access"
# status = "new"
# searched = """\
# 2026-11-24, threads on GitHub: NLopt python numpy big-endian byte order array set_lower_bounds"""
#
# [tool.gridbuf-finding.releases]
# date = "2026-11-24"
# "does not run" = ["2.4.2.post1", "2.7.1"]
# package = "nlopt"
# python = "3.12"
# listed = 10
# shown = ["2.8.0", "2.9.0", "2.11.0"]
#
# [tool.gridbuf-finding.replays.affected]
# actual = "1.5634076072010716e-297"
# expected = "4.1048022430272647e-215 at element [0]"
# outcome = "FAIL"
#
# [tool.gridbuf-finding.replays.passes]
# outcome = "PASS"
#
# [tool.gridbuf-finding.runs."nlopt-2.11.0"]
# date = "2026-11-25"
# exit = 1
# told = "defect: [1.0, 2.0, 3.0, 4.0] became [3.03865e-319, 3.16e-322, 1.0435e-320, 2.0553e-320]"
# ///
"""nlopt reads big-endian bounds as little-endian ones"""

import sys

import nlopt
import numpy as np

source = np.arange(1, 5, dtype=">f8")
try:
    problem = nlopt.opt(nlopt.LN_COBYLA, 4)
    problem.set_lower_bounds(source)
    copy = problem.get_lower_bounds()
except (TypeError, ValueError, RuntimeError) as error:
    print("refused:", error)
    sys.exit(0)
sys.exit(f"defect: {source.tolist()} became {copy.tolist()}" if (copy != source).any() else 0)
