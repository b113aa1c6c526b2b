# /// script
# requires-python = "==3.12.*"
# dependencies = ["voyager==2.2.3", "numpy==2.4.6"]
#
# [tool.gridbuf-finding]
# library = "Voyager"
# side = "consumer"
# target = "zoo/consumers.py:voyager_vectors"
# rule = "AI-22"
# also_rules = ["PB-32"]
# plan = '{"shape":[2,3],"dtype":"float32","layout":[1,0],"export":"array-interface"}'
# passes = "numpy-2.5.5"
# passes_target = "numpy.asarray"
# severity = "values"
# expected = """\
# The vectors that come back are [[1.0, 3.0, 5.0], [2.0, 4.0, 6.0]], or the array is refused."""
# impact = "The index has other vectors than the caller gave, and no error says so."
# fix = """\
# In Index.add_items, make the array C-contiguous (`py::array::c_style | py::array::forcecast`) \
# before it is read."""
# source = "NumPy reference, ndarray.strides"
# source_link = "https://numpy.org/doc/2.2/reference/generated/numpy.ndarray.strides.html"
# status = "new"
# searched = """\
# 2026-11-24, threads on GitHub: spotify voyager add_items non-contiguous numpy array strides \
# ignored wrong vectors"""
# picture = """
#
# rows of a[::2]         | row 0 |       | row 2 |       | row 4 |
# rows that are stored   | row 0 | row 1 | row 2 |"""
#
# [tool.gridbuf-finding.releases]
# date = "2026-11-24"
# package = "voyager"
# python = "3.12"
# listed = 14
# shown = ["2.0.0", "2.2.3"]
#
# [tool.gridbuf-finding.replays.affected]
# actual = "3.3611044896826437e-18"
# expected = "2.9825357489999e-27 at element [0, 1]"
# outcome = "FAIL"
#
# [tool.gridbuf-finding.replays.passes]
# outcome = "PASS"
#
# [tool.gridbuf-finding.runs."voyager-2.2.3"]
# date = "2026-11-25"
# exit = 1
# told = "defect: [[1.0, 3.0, 5.0], [2.0, 4.0, 6.0]] became [[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]"
# ///
"""voyager.Index.add_items ignores the strides of an array"""

import sys

import numpy as np
import voyager

source = np.arange(1, 7, dtype="f4").reshape(3, 2).T
try:
    index = voyager.Index(voyager.Space.Euclidean, num_dimensions=source.shape[1])
    copy = index.get_vectors(index.add_items(source))
except (TypeError, ValueError, RuntimeError) as error:
    print("refused:", error)
    sys.exit(0)
sys.exit(f"defect: {source.tolist()} became {copy.tolist()}" if (copy != source).any() else 0)
