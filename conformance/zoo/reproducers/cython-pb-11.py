"""A memoryview of Cython that is reversed grants a request without strides: zlib reads past its memory."""

import subprocess
import sys
import zlib

import numpy as np
from sklearn.neighbors import KDTree

if len(sys.argv) < 2:
    died = subprocess.run([sys.executable, __file__, "child"]).returncode
    sys.exit(f"defect: the process died of signal {-died}" if died < 0 else 2 * bool(died))

exporter = KDTree(np.zeros((2**20, 16))).data[::-1]
try:
    zlib.crc32(exporter)  # asks for PyBUF_SIMPLE: bytes in C order
except (BufferError, ValueError) as error:
    print("refused:", error)
