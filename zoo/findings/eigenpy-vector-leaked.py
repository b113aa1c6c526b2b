# /// script
# requires-python = "==3.12.*"
# dependencies = ["eigenpy==3.13.0", "numpy==2.4.6"]
#
# [tool.gridbuf-finding]
# library = "eigenpy"
# side = "consumer"
# target = "zoo/consumers.py:eigenpy_vector"
# rule = "PB-24"
# also_rules = ["PB-29"]
# plan = '{"dtype":"float64","export":"buffer"}'
# passes = "numpy-2.5.5"
# passes_target = "numpy.asarray"
# severity = "leak"
# expected = """\
# append copies the numbers, so nothing refers to the array when the StdVec_VectorXd is gone."""
# impact = "The memory of each appended array is never freed."
# fix = """\
# In append of StdVec_VectorXd, release the reference to the argument (Py_DECREF) after it is \
# converted."""
# source = "Python documentation (3.13), Reference count details"
# source_link = "https://docs.python.org/3.13/c-api/intro.html#reference-count-details"
# status = "new"
# searched = """\
# 2026-11-24, threads on GitHub: eigenpy StdVec append reference leak numpy array refcount"""
#
# [tool.gridbuf-finding.releases]
# date = "2026-11-24"
# "does not run" = ["3.1.2", "3.1.3"]
# package = "eigenpy"
# python = "3.12"
# listed = 13
# shown = ["3.1.3.1", "3.1.4", "3.4.0", "3.13.0"]
#
# [tool.gridbuf-finding.replays.affected]
# actual = "one was released never"
# expected = "each view is released once"
# outcome = "FAIL"
#
# [tool.gridbuf-finding.replays.passes]
# outcome = "PASS"
#
# [tool.gridbuf-finding.runs."eigenpy-3.13.0"]
# date = "2026-11-25"
# exit = 1
# told = "defect: 10 references are left of 10 containers"
# ///
"""eigenpy leaks a reference to each array that is appended to a StdVec_VectorXd"""

import sys

import eigenpy
import numpy as np

source = np.arange(4.0)
before = sys.getrefcount(source)
for _ in range(10):
    vectors = eigenpy.StdVec_VectorXd()
    vectors.append(source)
    del vectors
leaked = sys.getrefcount(source) - before
sys.exit(f"defect: {leaked} references are left of 10 containers" if leaked >= 10 else 0)
