# /// script
# requires-python = "==3.13.*"
# dependencies = ["pyarrow==26.0.1", "numpy==2.5.5"]
#
# [tool.gridbuf-finding]
# library = "PyArrow"
# side = "producer"
# target = "pyarrow.tensor"
# rule = "PB-11"
# also_rules = ["PB-06", "PB-08", "PB-09", "PB-12"]
# plan = '{"shape":[2,3,4],"layout":[2,1,0]}'
# also_affected = ["pyarrow-12.0.1", "pyarrow-20.0.0"]
# passes = "numpy-2.5.5"
# passes_target = "numpy"
# severity = "values"
# expected = """\
# A column-major tensor refuses a request without strides with BufferError, as NumPy's array does."""
# impact = "A file gets the elements in another order, and no error says so."
# fix = """\
# In Tensor.__getbuffer__, raise BufferError if the flags lack PyBUF_STRIDES and the \
# pyarrow.Tensor is not row-major."""
# status = "new"
# searched = """\
# 2026-11-23, threads on GitHub: pyarrow Tensor buffer protocol __getbuffer__ ignores flags \
# column-major Fortran PyBUF_SIMPLE"""
#
# [tool.gridbuf-finding.releases]
# date = "2026-11-24"
# "does not run" = ["0.9.0", "11.0.0", "14.0.2", "15.0.2", "16.1.0", "17.0.0"]
# package = "pyarrow"
# python = "3.13"
# listed = 53
# shown = ["18.0.0", "22.0.0", "24.0.0", "25.0.1", "26.0.0", "26.0.1"]
#
# [tool.gridbuf-finding.replays.affected]
# actual = "SIMPLE, WRITABLE, FORMAT, ND, ND|FORMAT, CONTIG granted"
# expected = "a refusal, for strides (8, 16, 48) of shape (2, 3, 4) are not C-contiguous"
# outcome = "FAIL"
#
# [tool.gridbuf-finding.replays.passes]
# outcome = "PASS"
#
# [tool.gridbuf-finding.runs."pyarrow-12.0.1"]
# date = "2026-11-25"
# exit = 1
# told = "defect: [0.0, 1.0, 2.0, 3.0, 4.0, 5.0] was written as [0.0, 3.0, 1.0, 4.0, 2.0, 5.0]"
#
# [tool.gridbuf-finding.runs."pyarrow-20.0.0"]
# date = "2026-11-25"
# exit = 1
# told = "defect: [0.0, 1.0, 2.0, 3.0, 4.0, 5.0] was written as [0.0, 3.0, 1.0, 4.0, 2.0, 5.0]"
#
# [tool.gridbuf-finding.runs."pyarrow-26.0.1"]
# date = "2026-11-25"
# exit = 1
# told = "defect: [0.0, 1.0, 2.0, 3.0, 4.0, 5.0] was written as [0.0, 3.0, 1.0, 4.0, 2.0, 5.0]"
# ///
"""A column-major pyarrow.Tensor is exported to consumers that ask for plain bytes, in the wrong order"""

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
