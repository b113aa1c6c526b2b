# /// script
# requires-python = "==3.12.*"
# dependencies = ["openvino==2026.4.1", "numpy==2.4.6"]
#
# [tool.gridbuf-finding]
# library = "OpenVINO"
# side = "consumer"
# target = "zoo/consumers.py:openvino_tensor"
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
# impact = "The Tensor has other numbers than the caller gave, and no error says so."
# fix = """\
# In the constructor of openvino.Tensor, look at `dtype.isnative`, and convert or refuse the \
# array."""
# source = "NumPy C API, Data access"
# source_link = "https://numpy.org/doc/2.2/reference/c-api/array.html#data-access"
# status = "new"
# searched = "2026-11-23, threads on GitHub: openvino Tensor numpy big-endian byte order"
#
# [tool.gridbuf-finding.releases]
# date = "2026-11-24"
# "does not run" = ["2024.1.0"]
# package = "openvino"
# python = "3.12"
# listed = 20
# shown = ["2024.2.0", "2024.3.0", "2024.5.0", "2025.3.0", "2026.4.1"]
#
# [tool.gridbuf-finding.replays.affected]
# actual = "1.5307832628951474e-37"
# expected = "6.474403375969398e-37 at element [0]"
# outcome = "FAIL"
#
# [tool.gridbuf-finding.replays.passes]
# outcome = "PASS"
#
# [tool.gridbuf-finding.runs."openvino-2026.4.1"]
# date = "2026-11-25"
# exit = 1
# told = "defect: [0.0, 1.0, 2.0, 3.0] became [0.0, 4.600602988224807e-41, 8.96831017167883e-44, 2.304855714121459e-41]"
# ///
"""openvino.Tensor reads big-endian arrays as little-endian ones"""

import sys

import numpy as np
import openvino

source = np.arange(4, dtype=">f4")
try:
    copy = openvino.Tensor(source).data
except (TypeError, ValueError, RuntimeError) as error:
    print("refused:", error)
    sys.exit(0)
sys.exit(f"defect: {source.tolist()} became {copy.tolist()}" if (copy != source).any() else 0)
