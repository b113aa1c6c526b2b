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
# why = """\
# Each view is released once, when its consumer is done with it (PB-24). append copies the \
# numbers, and leaks a reference to the array."""
# seen = "sys.getrefcount(a) grows by 1 with each append, also after the container is gone."
# status = "new"
# searched = """\
# 2026-11-24, threads on GitHub: eigenpy StdVec append reference leak numpy array refcount"""
# ///
"""eigenpy leaks a reference to each array that is appended to a StdVec_VectorXd."""

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
