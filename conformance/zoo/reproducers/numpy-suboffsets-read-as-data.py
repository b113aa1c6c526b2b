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
# why = """\
# A consumer that asks for PyBUF_INDIRECT has to follow suboffsets, or not ask for them. NumPy \
# asks for PyBUF_FULL_RO and does not follow them."""
# seen = """\
# numpy.array(_testbuffer.ndarray(…, flags=ND_PIL)) gives addresses in 1.22.0, BufferError in \
# 2.2.2."""
# status = "fixed"
# fixed_in = "1.26.4"
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
