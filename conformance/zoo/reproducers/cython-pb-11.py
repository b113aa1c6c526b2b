# /// script
# requires-python = "==3.12.*"
# dependencies = ["scikit-learn==1.9.1", "numpy==2.5.5"]
#
# [tool.gridbuf-finding]
# library = "Cython (in scikit-learn)"
# side = "producer"
# target = "cython"
# rule = "PB-11"
# also_rules = ["PB-09", "PB-12"]
# plan = '{"shape":[1,2],"views":[["reverse",1]]}'
# why = """\
# The flags of a request say which fields to fill and which memory to grant (buffer protocol, \
# request types). memoryview.__getbuffer__ copies fields by flag and never checks contiguity: a \
# reversed slice is granted without strides, and the consumer reads before and past it."""
# seen = "Reversed: ND granted, C granted with strides [16, -8]."
# status = "new"
# searched = """\
# 2026-11-23, threads on GitHub: cython memoryview __getbuffer__ does not check contiguity \
# PyBUF_SIMPLE reversed slice F_CONTIGUOUS"""
# picture = """
# strides (-128, 8): a memoryview that is reversed
# memory         | row 0 | row 1 | … | row n |  not the array's
#                                    ^ buf: element [0, 0]
# PyBUF_SIMPLE                       |———— reads n rows ————>"""
# ///
"""A reversed memoryview of Cython grants a request without strides: zlib reads past its memory."""

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
