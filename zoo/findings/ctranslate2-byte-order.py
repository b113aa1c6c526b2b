# /// script
# requires-python = "==3.12.*"
# dependencies = ["ctranslate2==4.8.5", "numpy==2.5.5"]
#
# [tool.gridbuf-finding]
# library = "CTranslate2"
# side = "consumer"
# target = "ctranslate2.StorageView.from_array"
# rule = "AI-34"
# plan = '{"dtype":"int32","byteorder":"swapped","export":"array-interface"}'
# passes = "numpy-2.5.5"
# passes_target = "numpy.asarray"
# pattern = "byte-order"
# severity = "values"
# expected = """\
# The result is [0, 1, 2], or the array is refused. The first character of typestr is the byte \
# order."""
# impact = "The StorageView has other numbers than the caller gave, and no error says so."
# fix = """\
# In StorageView.from_array, read the first character of typestr, and refuse '>' on a \
# little-endian machine as other types are refused."""
# status = "new"
# searched = """\
# 2026-11-23, threads on GitHub: CTranslate2 StorageView from_array big-endian byte order, non \
# contiguous memory strides __array_interface__"""
#
# [tool.gridbuf-finding.releases]
# date = "2026-11-24"
# package = "ctranslate2"
# python = "3.12"
# listed = 25
# shown = ["3.19.0", "4.8.5"]
#
# [tool.gridbuf-finding.replays.affected]
# actual = "38820867"
# expected = "56381442 at element [0]"
# outcome = "FAIL"
#
# [tool.gridbuf-finding.replays.passes]
# outcome = "PASS"
#
# [tool.gridbuf-finding.runs."ctranslate2-4.8.5"]
# date = "2026-11-25"
# exit = 1
# told = "defect: [0, 1, 2] became [0, 16777216, 33554432]"
# ///
"""ctranslate2.StorageView.from_array reads big-endian numbers as little-endian ones"""

import sys

import ctranslate2
import numpy as np

try:
    view = ctranslate2.StorageView.from_array(np.arange(3, dtype=">i4"))
except ValueError as error:
    print("refused:", error)
    sys.exit(0)
values = np.array(view).tolist()
sys.exit(f"defect: [0, 1, 2] became {values}" if values != [0, 1, 2] else 0)
