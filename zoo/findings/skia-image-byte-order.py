# /// script
# requires-python = "==3.12.*"
# dependencies = ["skia-python==144.1", "numpy==2.4.6"]
#
# [tool.gridbuf-finding]
# library = "skia-python"
# side = "consumer"
# target = "zoo/consumers.py:skia_image"
# rule = "AI-34"
# also_rules = ["PB-20"]
# plan = '{"shape":[2,2],"dtype":"float32","byteorder":"swapped","export":"array-interface"}'
# passes = "numpy-2.5.5"
# passes_target = "numpy.asarray"
# pattern = "byte-order"
# severity = "values"
# expected = """\
# The result is [[[1.0, 2.0, 3.0, 4.0]]], or the array is refused. Code that reads the data of a \
# NumPy array has to respect its byte order."""
# impact = "The image has other numbers than the caller gave, and no error says so."
# fix = """\
# In skia.Image.fromarray, compare the whole dtype of the array with that of colorType, and refuse \
# it if the byte order differs."""
# source = "NumPy C API, Data access"
# source_link = "https://numpy.org/doc/2.2/reference/c-api/array.html#data-access"
# status = "new"
# searched = """\
# 2026-11-24, threads on GitHub: skia-python Image.fromarray byte order big-endian; skia.Data \
# buffer lifetime dangling bytearray"""
#
# [tool.gridbuf-finding.releases]
# date = "2026-11-24"
# package = "skia-python"
# python = "3.12"
# listed = 9
# shown = ["87.6", "144.1"]
#
# [tool.gridbuf-finding.replays.affected]
# actual = "1.5307832628951474e-37"
# expected = "6.474403375969398e-37 at element [0, 0]"
# outcome = "FAIL"
#
# [tool.gridbuf-finding.replays.passes]
# outcome = "PASS"
#
# [tool.gridbuf-finding.runs."skia-python-144.1"]
# date = "2026-11-25"
# exit = 1
# told = "defect: [[[1.0, 2.0, 3.0, 4.0]]] became [[[4.600602988224807e-41, 8.96831017167883e-44, 2.304855714121459e-41, 4.600743118071239e-41]]]"
# ///
"""skia.Image.fromarray reads big-endian pixels as little-endian ones"""

import sys

import numpy as np
import skia

source = np.arange(1, 5, dtype=">f4").reshape(1, 1, 4)
try:
    image = skia.Image.fromarray(source, skia.kRGBA_F32_ColorType)
    copy = image.toarray(colorType=skia.kRGBA_F32_ColorType)
except (TypeError, ValueError, RuntimeError) as error:
    print("refused:", error)
    sys.exit(0)
sys.exit(f"defect: {source.tolist()} became {copy.tolist()}" if (copy != source).any() else 0)
