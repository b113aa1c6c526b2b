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
