# /// script
# requires-python = "==3.12.*"
# dependencies = ["imagecodecs==2026.10.10", "numpy==2.4.6"]
#
# [tool.gridbuf-finding]
# library = "imagecodecs"
# side = "consumer"
# target = "zoo/consumers.py:imagecodecs_tiff"
# rule = "AI-34"
# also_rules = ["AS-05", "PB-20", "PB-22"]
# plan = '{"shape":[2,2],"dtype":"uint16","byteorder":"swapped","export":"array-interface"}'
# passes = "numpy-2.5.5"
# passes_target = "numpy.asarray"
# pattern = "byte-order"
# severity = "values"
# expected = """\
# The result is [[0, 1], [2, 3]], or the array is refused. Code that reads the data of a NumPy \
# array has to respect its byte order."""
# impact = "The TIFF file has other numbers than the caller gave, and no error says so."
# fix = """\
# In tiff_encode, convert data with `data.astype(data.dtype.newbyteorder('='))`, or refuse it with \
# ValueError."""
# source = "NumPy C API, Data access"
# source_link = "https://numpy.org/doc/2.2/reference/c-api/array.html#data-access"
# status = "new"
# searched = "2026-11-23, threads on GitHub: imagecodecs tiff_encode big-endian array byte order"
#
# [tool.gridbuf-finding.releases]
# date = "2026-11-24"
# "does not run" = ["2018.10.10", "2023.3.16", "2025.11.11", "2026.1.1"]
# package = "imagecodecs"
# python = "3.12"
# listed = 32
# shown = ["2026.1.14", "2026.5.10", "2026.10.10"]
#
# [tool.gridbuf-finding.replays.affected]
# actual = "592"
# expected = "20482 at element [0, 0]"
# outcome = "FAIL"
#
# [tool.gridbuf-finding.replays.passes]
# outcome = "PASS"
#
# [tool.gridbuf-finding.runs."imagecodecs-2026.10.10"]
# date = "2026-11-25"
# exit = 1
# told = "defect: [[0, 1], [2, 3]] became [[0, 256], [512, 768]]"
# ///
"""imagecodecs.tiff_encode writes big-endian pixels as little-endian ones"""

import sys

import imagecodecs
import numpy as np

source = np.arange(4, dtype=">u2").reshape(2, 2)
try:
    copy = imagecodecs.tiff_decode(imagecodecs.tiff_encode(source))
except (TypeError, ValueError) as error:
    print("refused:", error)
    sys.exit(0)
sys.exit(f"defect: {source.tolist()} became {copy.tolist()}" if (copy != source).any() else 0)
