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
# ///
"""An attribute of MLIR is read-only and grants a writable buffer."""

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
