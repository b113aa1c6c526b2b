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
# ///
"""skia.Image.fromarray reads big-endian pixels as little-endian ones."""

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
