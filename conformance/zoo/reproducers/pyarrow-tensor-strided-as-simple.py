"""A column-major pyarrow.Tensor is exported to consumers that ask for plain bytes, in the wrong order."""

import io
import sys

import numpy as np
import pyarrow

matrix = np.asfortranarray(np.arange(6.0).reshape(2, 3))
tensor = pyarrow.Tensor.from_numpy(matrix)
file = io.BytesIO()
try:
    file.write(tensor)  # asks for PyBUF_CONTIG_RO: rows one after the other
except (BufferError, ValueError) as error:
    print("refused:", error)
    sys.exit(0)
written = np.frombuffer(file.getvalue()).tolist()
sys.exit(
    f"defect: {matrix.ravel().tolist()} was written as {written}" if written != [*range(6)] else 0
)
