# /// script
# requires-python = "==3.12.*"
# dependencies = ["Cython==3.2.5", "scikit-learn==1.9.1", "numpy==2.5.5"]
#
# [tool.gridbuf-finding]
# library = "Cython"
# side = "producer"
# target = "cython"
# rule = "PB-11"
# also_rules = ["PB-09", "PB-12"]
# plan = '{"shape":[1,2],"views":[["reverse",1]]}'
# severity = "memory"
# expected = """\
# A memoryview that is not contiguous refuses a request without strides with BufferError."""
# impact = """\
# zlib.crc32 of a reversed memoryview reads memory that is not its own, and the process crashes."""
# fix = """\
# In memoryview.__getbuffer__, raise BufferError if the flags lack PyBUF_STRIDES and the slice is \
# not C-contiguous. The script shows it with zlib.crc32."""
# status = "new"
# searched = """\
# 2026-11-23, threads on GitHub: cython memoryview __getbuffer__ does not check contiguity \
# PyBUF_SIMPLE reversed slice F_CONTIGUOUS"""
# picture = """
# strides (-128, 8): a memoryview that is reversed
# memory         | row 0 | row 1 | … | row n |  not the array's
#                                    ^ buf: element [0, 0]
# PyBUF_SIMPLE                       |———— reads n rows ————>"""
#
# [tool.gridbuf-finding.releases]
# date = "2026-11-26"
# "does not run" = ["0.9.6.5", "0.28.3", "0.29.30", "0.29.33"]
# package = "Cython"
# python = "3.12"
# listed = 140
# shown = ["0.29.34", "0.29.35", "3.0.1", "3.0.10", "3.2.5", "3.3.1"]
#
# [tool.gridbuf-finding.replays.affected]
# actual = "SIMPLE, WRITABLE, FORMAT, ND, ND|FORMAT, CONTIG granted"
# expected = "a refusal, for strides (16, -8) of shape (1, 2) are not C-contiguous"
# note = "after the view operations"
# outcome = "FAIL"
#
# [tool.gridbuf-finding.runs."scikit-learn-1.9.1"]
# date = "2026-11-26"
# exit = 1
# told = "defect: the process died of signal 11"
# ///
"""A reversed memoryview of Cython grants a request without strides: zlib reads past its memory"""

import subprocess
import sys
import sysconfig
import zlib

import numpy as np

if len(sys.argv) < 2:
    with open("shown.pyx", "w") as file:
        file.write("def rows(double[:, :] source):\n    return source\n")
    subprocess.run([sys.executable, "-m", "cython", "-3", "shown.pyx"], check=True)
    include = f"-I{sysconfig.get_path('include')}"
    subprocess.run(["cc", "-shared", "-fPIC", include, "-o", "shown.so", "shown.c"], check=True)
    died = subprocess.run([sys.executable, __file__, "child"]).returncode
    sys.exit(f"defect: the process died of signal {-died}" if died < 0 else 2 * bool(died))

sys.path.insert(0, ".")
import shown

exporter = shown.rows(np.zeros((2**20, 16)))[::-1]
try:
    zlib.crc32(exporter)  # asks for PyBUF_SIMPLE: bytes in C order
except (BufferError, ValueError) as error:
    print("refused:", error)
