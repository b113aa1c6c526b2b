# /// script
# requires-python = "==3.12.*"
# dependencies = ["skia-python==144.1", "numpy==2.4.6"]
#
# [tool.gridbuf-finding]
# library = "skia-python"
# side = "consumer"
# target = "zoo/consumers.py:skia_data"
# rule = "XA-15"
# also_rules = ["PB-15", "PB-32", "PB-20"]
# plan = '{"shape":[],"dtype":"float64","export":"buffer"}'
# passes = "cpython-3.13.0"
# passes_target = "memoryview"
# severity = "values"
# expected = "The data has as many bytes as the buffer, 8 here."
# impact = "The bytes of a buffer without dimensions are lost, and no error says so."
# fix = """\
# In skia.Data, take the size from len of the view (`itemsize * size` of py::buffer_info), not \
# from the shape and the strides."""
# source = "Python documentation (3.13), Py_buffer.len"
# source_link = "https://docs.python.org/3.13/c-api/buffer.html#c.Py_buffer.len"
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
# actual = "0 bytes"
# expected = "8 bytes"
# outcome = "FAIL"
#
# [tool.gridbuf-finding.replays.passes]
# outcome = "PASS"
#
# [tool.gridbuf-finding.runs."skia-python-144.1"]
# date = "2026-11-25"
# exit = 1
# told = "defect: a buffer of 8 bytes became 0 bytes"
# ///
"""skia.Data has another size than the buffer that it is made of"""

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
