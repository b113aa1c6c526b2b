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
# why = """\
# The first character of typestr is the byte order: a consumer uses it or refuses the array \
# (AI-34). The encoder looks at the kind and the size of a NumPy array's type, and does not \
# convert the bytes."""
# seen = """\
# [[0, 1], [2, 3]] as '>u2' becomes [[0, 256], [512, 768]], without an error. png_encode refuses \
# such an array."""
# status = "new"
# searched = "2026-11-23, threads on GitHub: imagecodecs tiff_encode big-endian array byte order"
# ///
"""imagecodecs.tiff_encode writes big-endian pixels as little-endian ones."""

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
