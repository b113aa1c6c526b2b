# /// script
# requires-python = "==3.12.*"
# dependencies = ["skia-python==144.1", "numpy==2.4.6"]
#
# [tool.gridbuf-finding]
# library = "skia-python"
# side = "consumer"
# target = "zoo/consumers.py:skia_data"
# rule = "XA-15"
# also_rules = ["PB-15", "PB-32"]
# plan = '{"shape":[],"dtype":"float64","export":"buffer"}'
# passes = "cpython-3.13.0"
# passes_target = "memoryview"
# why = """\
# A buffer has len bytes (buffer protocol, len). One without dimensions becomes 0 bytes, and the \
# stride of an axis of extent 1, which is never used, becomes a size."""
# seen = "skia.Data(np.float64(1)) and of a 0-d array have 0 bytes."
# status = "new"
# searched = """\
# 2026-11-24, threads on GitHub: skia-python Image.fromarray byte order big-endian; skia.Data \
# buffer lifetime dangling bytearray"""
# ///
"""skia.Data has another size than the buffer that it is made of."""

import sys

import numpy as np
import skia

source = np.array(1.0)
try:
    size = skia.Data(source).size()
except (TypeError, ValueError) as error:
    print("refused:", error)
    sys.exit(0)
sys.exit(
    f"defect: a buffer of {source.nbytes} bytes became {size} bytes" if size != source.nbytes else 0
)
