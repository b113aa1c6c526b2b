# /// script
# requires-python = "==3.12.*"
# dependencies = ["pyBigWig==0.3.29", "numpy==2.4.6"]
#
# [tool.gridbuf-finding]
# library = "pyBigWig"
# side = "consumer"
# target = "zoo/consumers.py:pybigwig_values"
# rule = "AI-34"
# also_rules = ["PB-20"]
# plan = '{"dtype":"float32","byteorder":"swapped","export":"array-interface"}'
# passes = "numpy-2.5.5"
# passes_target = "numpy.asarray"
# pattern = "byte-order"
# severity = "values"
# expected = """\
# The result is [1.0, 2.0, 3.0, 4.0], or the array is refused. Code that reads the data of a NumPy \
# array has to respect its byte order."""
# impact = "The bigWig file has other numbers than the caller gave, and no error says so."
# fix = "In addEntries, test PyArray_ISNOTSWAPPED for values, and convert or refuse the array."
# source = "NumPy C API, Data access"
# source_link = "https://numpy.org/doc/2.2/reference/c-api/array.html#data-access"
# status = "new"
# searched = """\
# 2026-11-24, threads on GitHub: pyBigWig addEntries numpy values big-endian dtype wrong values"""
#
# [tool.gridbuf-finding.releases]
# date = "2026-11-24"
# "does not run" = ["0.0.0", "0.3.7", "0.3.17", "0.3.22"]
# package = "pyBigWig"
# python = "3.12"
# listed = 40
# shown = ["0.3.23", "0.3.24", "0.3.29"]
#
# [tool.gridbuf-finding.replays.affected]
# actual = "1.5307832628951474e-37"
# expected = "6.474403375969398e-37 at element [0]"
# outcome = "FAIL"
#
# [tool.gridbuf-finding.replays.passes]
# outcome = "PASS"
#
# [tool.gridbuf-finding.runs."pybigwig-0.3.29"]
# date = "2026-11-25"
# exit = 1
# told = "defect: [1.0, 2.0, 3.0, 4.0] became [4.600602988224807e-41, 8.96831017167883e-44, 2.304855714121459e-41, 4.600743118071239e-41]"
# ///
"""addEntries of pyBigWig writes big-endian values as little-endian ones"""

import sys

import numpy as np
import pyBigWig

source = np.arange(1, 5, dtype=">f4")
try:
    with pyBigWig.open("x.bw", "w") as file:
        file.addHeader([("chr", 8)])
        file.addEntries("chr", 0, values=source, span=1, step=1)
    with pyBigWig.open("x.bw") as file:
        copy = np.array(file.values("chr", 0, 4))
except (TypeError, ValueError, RuntimeError) as error:
    print("refused:", error)
    sys.exit(0)
sys.exit(f"defect: {source.tolist()} became {copy.tolist()}" if (copy != source).any() else 0)
