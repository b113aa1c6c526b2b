# /// script
# requires-python = "==3.13.*"
# dependencies = ["jaxlib==0.12.0.1", "numpy==2.5.5"]
#
# [tool.gridbuf-finding]
# library = "MLIR"
# side = "producer"
# target = "mlir"
# rule = "PB-13"
# also_rules = ["PB-02", "PB-08", "PB-12"]
# plan = '{"readonly":true}'
# passes = "numpy-2.5.5"
# passes_target = "numpy"
# severity = "values"
# expected = "An attribute is immutable, and refuses PyBUF_WRITABLE with BufferError."
# impact = "readinto changes an attribute, which MLIR treats as immutable."
# fix = """\
# In the getbuffer function of DenseElementsAttr, raise BufferError if the flags have \
# PyBUF_WRITABLE."""
# status = "new"
# searched = """\
# 2026-11-23, threads on GitHub: MLIR python bindings DenseElementsAttr buffer protocol writable \
# readonly PyBUF flags"""
#
# [tool.gridbuf-finding.releases]
# date = "2026-11-26"
# gone = ["0.4.34", "0.4.38"]
# package = "jaxlib"
# python = "3.13"
# listed = 29
# shown = ["0.5.0", "0.5.1", "0.6.0", "0.8.1", "0.12.0.1"]
#
# [tool.gridbuf-finding.replays.affected]
# actual = "WRITABLE granted with readonly 1"
# expected = "readonly 0, or a refusal"
# outcome = "FAIL"
#
# [tool.gridbuf-finding.replays.passes]
# note = "every request for writable memory is refused"
# outcome = "PASS"
#
# [tool.gridbuf-finding.runs."jaxlib-0.12.0.1"]
# date = "2026-11-26"
# exit = 1
# told = "defect: written: dense<[0.000000e+00, 1.000000e+00, 2.000000e+00]> : tensor<3xf64> became dense<[1.3824172084878715E+306, 1.000000e+00, 2.000000e+00]> : tensor<3xf64>"
# ///
"""An attribute of MLIR is read-only and grants a writable buffer"""

import io
import sys

import numpy as np
from jaxlib.mlir import ir

context = ir.Context()
with context, ir.Location.unknown():
    exporter = ir.DenseElementsAttr.get(np.arange(3.0))
before = str(exporter)
try:
    io.BytesIO(b"\x7f" * 8).readinto(exporter)  # asks for PyBUF_WRITABLE
except (BufferError, TypeError) as error:
    print("refused:", error)
    sys.exit(0)
after = str(exporter)
sys.exit(f"defect: written: {before} became {after}" if before != after else 0)
