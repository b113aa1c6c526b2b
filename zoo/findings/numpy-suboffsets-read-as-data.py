# /// script
# requires-python = "==3.10.*"
# dependencies = ["numpy==1.22.0"]
#
# [tool.gridbuf-finding]
# library = "NumPy"
# side = "consumer"
# target = "numpy.asarray"
# rule = "PB-32"
# plan = '{"export":"buffer:suboffsets"}'
# passes = "numpy-2.5.5"
# severity = "values"
# expected = """\
# The values are [[0, 1], [2, 3]], or the buffer is refused. A consumer that asks for suboffsets \
# has to follow them."""
# impact = "The array has addresses instead of the values, and no error says so."
# fix = "In numpy.array, refuse a buffer with suboffsets that are not negative. 1.23.0 does it."
# source = "Python documentation (3.13), Py_buffer.suboffsets"
# source_link = "https://docs.python.org/3.13/c-api/buffer.html#c.Py_buffer.suboffsets"
# status = "fixed"
# fixed_in = "1.23.0"
# tracker = "https://github.com/numpy/numpy/issues/9456"
#
# [tool.gridbuf-finding.releases]
# date = "2026-11-30"
# "does not run" = ["1.3.0", "1.15.2", "1.18.3", "1.20.1", "1.20.3", "1.21.0", "1.21.1"]
# gone = ["1.23.0", "1.23.5", "1.24.4", "1.25.2", "1.26.0", "1.26.4", "2.0.2", "2.1.3", "2.2.6"]
# listed = 116
# package = "numpy"
# python = "3.10"
# series = 9
# shown = ["1.21.2", "1.21.6", "1.22.0", "1.22.3", "1.22.4"]
#
# [tool.gridbuf-finding.replays.affected]
# actual = "6.92534347915944e-310"
# expected = "4.1048022430272647e-215 at element [0]"
# outcome = "FAIL"
#
# [tool.gridbuf-finding.replays.passes]
# note = "refused: BufferError"
# outcome = "PASS"
#
# [tool.gridbuf-finding.runs."numpy-1.22.0"]
# date = "2026-11-25"
# exit = 1
# told = "defect: [[1224454496, 32673], [1224454504, 32673]]"
#
# [tool.gridbuf-finding.runs."numpy-2.5.5"]
# date = "2026-11-25"
# exit = 0
# told = "refused: NumPy currently does not support importing buffers which include suboffsets as they are not compatible with the NumPy memory layout without a copy.  Consider copying the original before trying to convert it to a NumPy array."
# ///
"""numpy.array reads the pointers of a buffer with suboffsets as if they were elements"""

import _testbuffer
import sys

import numpy as np

pil = _testbuffer.ndarray([0, 1, 2, 3], shape=[2, 2], format="i", flags=_testbuffer.ND_PIL)
try:
    values = np.array(pil)
except BufferError as error:
    print("refused:", error)
    sys.exit(0)
sys.exit(f"defect: {values.tolist()}" if values.tolist() != [[0, 1], [2, 3]] else 0)
