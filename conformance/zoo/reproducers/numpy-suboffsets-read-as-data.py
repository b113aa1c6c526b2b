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
# ///
"""numpy.array reads the pointers of a buffer with suboffsets as if they were elements."""

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
