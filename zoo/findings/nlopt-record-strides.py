# /// script
# requires-python = "==3.12.*"
# dependencies = ["nlopt==2.11.0", "numpy==2.4.6"]
#
# [tool.gridbuf-finding]
# library = "NLopt"
# side = "consumer"
# target = "zoo/consumers.py:nlopt_bounds"
# rule = "AI-22"
# also_rules = ["PB-32"]
# plan = '{"shape":[2],"export":"array-interface:field"}'
# passes = "numpy-2.5.5"
# passes_target = "numpy.asarray"
# pattern = "record-strides"
# severity = "values"
# expected = """\
# The result is [1.0, 2.0, 3.0, 4.0], or the array is refused. The strides of a NumPy array are bytes, \
# and need not be multiples of the item size."""
# impact = """\
# The bounds are bytes of other fields and neighbours of the record, and no error says so."""
# fix = """\
# In the generated wrapper of set_lower_bounds and its siblings, convert arrays whose strides are not a \
# multiple of the item size: the division by sizeof(double) rounds."""
# source = "NumPy reference, ndarray.strides"
# source_link = "https://numpy.org/doc/2.2/reference/generated/numpy.ndarray.strides.html"
# status = "new"
# searched = """\
# 2026-11-30, threads on GitHub: nlopt python numpy structured array field non-contiguous \
# strides wrong values set_lower_bounds"""
#
# [tool.gridbuf-finding.releases]
# date = "2026-12-01"
# "does not run" = ["2.4.2.post1", "2.7.1"]
# listed = 10
# package = "nlopt"
# python = "3.12"
# series = 4
# shown = ["2.8.0", "2.9.0", "2.9.1", "2.10.0", "2.11.0"]
#
# [tool.gridbuf-finding.replays.affected]
# actual = "2.4344647154278677e+204"
# expected = "1.2303742345927276e-142 at element [1]"
# outcome = "FAIL"
#
# [tool.gridbuf-finding.replays.passes]
# outcome = "PASS"
#
# [tool.gridbuf-finding.runs."nlopt-2.11.0"]
# date = "2026-11-30"
# exit = 1
# told = "defect: [1.0, 2.0, 3.0, 4.0] became [1.0, 0.0, 3.16e-322, 8.0987e-320]"
# ///
"""nlopt reads a field of records with other strides"""

import sys

import nlopt
import numpy as np

records = np.zeros(4, [("kind", "i1"), ("x", "f8")])
records["x"] = [1, 2, 3, 4]
source = records["x"]
try:
    problem = nlopt.opt(nlopt.LN_COBYLA, 4)
    problem.set_lower_bounds(source)
    copy = problem.get_lower_bounds()
except (TypeError, ValueError, RuntimeError) as error:
    print("refused:", error)
    sys.exit(0)
sys.exit(f"defect: {source.tolist()} became {copy.tolist()}" if (copy != source).any() else 0)
