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
