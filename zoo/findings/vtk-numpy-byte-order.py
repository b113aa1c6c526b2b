# /// script
# requires-python = "==3.12.*"
# dependencies = ["vtk==9.7.2", "numpy==2.5.5"]
#
# [tool.gridbuf-finding]
# library = "VTK"
# side = "consumer"
# target = "zoo/consumers.py:vtk_from_numpy"
# rule = "AI-34"
# also_rules = ["AS-05", "PB-20"]
# plan = '{"dtype":"float32","byteorder":"swapped","export":"array-interface"}'
# passes = "numpy-2.5.5"
# passes_target = "numpy.asarray"
# pattern = "byte-order"
# severity = "values"
# expected = """\
# The result is [0.0, 1.0, 2.0, 3.0], or the array is refused. Code that reads the data of a NumPy \
# array has to respect its byte order."""
# impact = "The VTK array has other numbers than the caller gave, and no error says so."
# fix = "In numpy_to_vtk, convert the array if its `dtype.isnative` is False, or raise ValueError."
# source = "NumPy C API, Data access"
# source_link = "https://numpy.org/doc/2.2/reference/c-api/array.html#data-access"
# status = "new"
# searched = """\
# 2026-11-23, threads on GitHub, not gitlab.kitware.com: vtk numpy_to_vtk big-endian byte order"""
#
# [tool.gridbuf-finding.releases]
# date = "2026-11-24"
# package = "vtk"
# python = "3.12"
# listed = 14
# shown = ["9.3.0", "9.7.2"]
#
# [tool.gridbuf-finding.replays.affected]
# actual = "1.5307832628951474e-37"
# expected = "6.474403375969398e-37 at element [0]"
# outcome = "FAIL"
#
# [tool.gridbuf-finding.replays.passes]
# outcome = "PASS"
#
# [tool.gridbuf-finding.runs."vtk-9.7.2-numpy"]
# date = "2026-11-25"
# exit = 1
# told = "defect: [0.0, 1.0, 2.0, 3.0] became [0.0, 4.600602988224807e-41, 8.96831017167883e-44, 2.304855714121459e-41]"
# ///
"""VTK's numpy_to_vtk reads big-endian arrays as little-endian ones"""

import sys

import numpy as np
from vtkmodules.util import numpy_support

source = np.arange(4, dtype=">f4")
try:
    copy = numpy_support.vtk_to_numpy(numpy_support.numpy_to_vtk(source, deep=True))
except (TypeError, ValueError) as error:
    print("refused:", error)
    sys.exit(0)
sys.exit(f"defect: {source.tolist()} became {copy.tolist()}" if (copy != source).any() else 0)
