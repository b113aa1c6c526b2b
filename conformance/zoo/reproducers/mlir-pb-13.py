# /// script
# requires-python = "==3.13.*"
# dependencies = ["jax==0.12.0.1", "jaxlib==0.12.0.1", "numpy==2.5.5"]
#
# [tool.gridbuf-finding]
# library = "MLIR (in jaxlib)"
# side = "producer"
# target = "mlir"
# rule = "PB-13"
# also_rules = ["PB-02", "PB-08", "PB-12"]
# plan = '{"readonly":true}'
# passes = "numpy-2.5.5"
# passes_target = "numpy"
# why = """\
# The flags of a request say which fields to fill and which memory to grant (buffer protocol, \
# request types). A consumer that asked for PyBUF_WRITABLE changes an attribute, which is \
# immutable and shared in its context. PyBUF_ND gets ndim 1 and no shape; Fortran order is \
# granted to row-major data."""
# seen = "WRITABLE: rc 0, readonly 1."
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
