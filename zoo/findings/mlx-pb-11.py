# /// script
# requires-python = "==3.12.*"
# dependencies = ["mlx[cpu]==0.32.4", "numpy==2.5.5"]
#
# [tool.gridbuf-finding]
# library = "MLX"
# side = "producer"
# target = "mlx"
# rule = "PB-11"
# also_rules = ["PB-08", "PB-12"]
# plan = '{"shape":[2],"dtype":"float32","views":[["reverse",0]]}'
# severity = "memory"
# expected = "An array that is not contiguous refuses a request without strides with BufferError."
# impact = """\
# zlib.crc32 of a reversed array reads memory that is not its own, and the process crashes."""
# fix = """\
# In the getbuffer function of mx.array, raise BufferError if the flags lack PyBUF_STRIDES and the \
# array is not row-contiguous. The script shows it with zlib.crc32."""
# status = "new"
# searched = """\
# 2026-11-23, threads on GitHub: mlx array buffer protocol PyBUF_SIMPLE non-contiguous negative \
# strides getbuffer ignores flags"""
# picture = """
# strides (-262144, 4): an array that is reversed
# memory         | row 0 | row 1 | … | row n |  not the array's
#                                    ^ buf: element [0, 0]
# PyBUF_SIMPLE                       |———— reads n rows ————>"""
#
# [tool.gridbuf-finding.releases]
# date = "2026-11-24"
# gone = ["0.2.0"]
# package = "mlx"
# python = "3.12"
# listed = 28
# shown = ["0.21.1", "0.26.1", "0.26.5", "0.29.4", "0.31.0", "0.31.1", "0.31.2", "0.32.0", "0.32.1", "0.32.2", "0.32.4"]
#
# [tool.gridbuf-finding.replays.affected]
# actual = "SIMPLE, WRITABLE, FORMAT, ND, ND|FORMAT, CONTIG granted"
# expected = "a refusal, for strides (-4,) of shape (2,) are not C-contiguous"
# note = "after the view operations"
# outcome = "FAIL"
#
# [tool.gridbuf-finding.runs."mlx-0.32.4"]
# date = "2026-11-25"
# exit = 1
# told = "defect: the process died of signal 11"
# ///
"""A reversed MLX array grants a request without strides: zlib reads past its memory"""

import subprocess
import sys
import zlib

import mlx.core as mx

if len(sys.argv) < 2:
    died = subprocess.run([sys.executable, __file__, "child"]).returncode
    sys.exit(f"defect: the process died of signal {-died}" if died < 0 else 2 * bool(died))

exporter = mx.zeros((1024, 65536))[::-1]
mx.eval(exporter)
try:
    zlib.crc32(exporter)  # asks for PyBUF_SIMPLE: bytes in C order
except (BufferError, ValueError) as error:
    print("refused:", error)
