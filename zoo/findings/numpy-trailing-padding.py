# /// script
# requires-python = "==3.13.*"
# dependencies = ["numpy==2.5.5"]
#
# [tool.gridbuf-finding]
# library = "NumPy"
# side = "producer"
# target = "numpy"
# also_targets = ["numpy.field", "numpy.memmap"]
# rule = "PB-20"
# plan = '{"dtype":"padded","byteorder":"swapped"}'
# also_affected = ["numpy-2.4.6", "numpy-2.2.6", "numpy-2.2.2", "numpy-1.26.4", "numpy-1.22.0"]
# severity = "form"
# expected = """\
# The format describes all 24 bytes of an item. Only native alignment adds padding that is not \
# written."""
# impact = """\
# The format describes 18 bytes of an item of 24. A consumer that trusts it cannot find the second \
# item."""
# fix = """\
# Where numpy.dtype makes the format of a record, add the padding at the end (6x here) if the \
# format is not in native order."""
# status = "acknowledged"
# tracker = "https://github.com/numpy/numpy/issues/7797"
#
# [tool.gridbuf-finding.releases]
# date = "2026-11-26"
# "does not run" = ["1.3.0", "1.19.2", "1.26.4", "2.0.1", "2.0.2"]
# package = "numpy"
# python = "3.13"
# listed = 127
# shown = ["2.1.0", "2.2.0", "2.3.1", "2.5.5"]
#
# [tool.gridbuf-finding.replays.affected]
# actual = "'T{b:a:xxxxxxx>d:b:(2,3)h:c:}' is 28 bytes for items of 32"
# expected = "padding written out, for this prefix does not align"
# outcome = "FAIL"
#
# [tool.gridbuf-finding.runs."numpy-1.22.0"]
# date = "2026-11-25"
# exit = 1
# told = "defect: 18 bytes by its format, 24 by its itemsize"
#
# [tool.gridbuf-finding.runs."numpy-1.26.4"]
# date = "2026-11-25"
# exit = 1
# told = "defect: 18 bytes by its format, 24 by its itemsize"
#
# [tool.gridbuf-finding.runs."numpy-2.2.2"]
# date = "2026-11-25"
# exit = 1
# told = "defect: 18 bytes by its format, 24 by its itemsize"
#
# [tool.gridbuf-finding.runs."numpy-2.2.6"]
# date = "2026-11-25"
# exit = 1
# told = "defect: 18 bytes by its format, 24 by its itemsize"
#
# [tool.gridbuf-finding.runs."numpy-2.4.6"]
# date = "2026-11-25"
# exit = 1
# told = "defect: 18 bytes by its format, 24 by its itemsize"
#
# [tool.gridbuf-finding.runs."numpy-2.5.5"]
# date = "2026-11-25"
# exit = 1
# told = "defect: 18 bytes by its format, 24 by its itemsize"
# ///
"""NumPy's buffer format of a big-endian record leaves out the padding at the record's end"""

import sys

import numpy as np

record = np.dtype([("a", "i1"), ("b", ">f8"), ("c", ">i2")], align=True)
view = memoryview(np.zeros(2, record))
print("format", view.format, "itemsize", view.itemsize)
written = 1 + view.format.count("x") + 8 + 2
if written != view.itemsize and "6x" not in view.format:
    sys.exit(f"defect: {written} bytes by its format, {view.itemsize} by its itemsize")
