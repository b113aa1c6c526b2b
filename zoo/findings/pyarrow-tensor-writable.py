# /// script
# requires-python = "==3.13.*"
# dependencies = ["pyarrow==26.0.1", "numpy==2.5.5"]
#
# [tool.gridbuf-finding]
# library = "PyArrow"
# side = "producer"
# target = "pyarrow.tensor"
# rule = "PB-13"
# plan = '{"dtype":"uint8","readonly":true}'
# also_affected = ["pyarrow-20.0.0", "pyarrow-12.0.1"]
# passes = "numpy-2.5.5"
# passes_target = "numpy"
# severity = "values"
# expected = "A tensor that is not mutable refuses PyBUF_WRITABLE with BufferError."
# impact = "readinto changes memory that the tensor says is read-only; here that of a bytes object."
# fix = """\
# In __getbuffer__ of pyarrow.Tensor, raise BufferError if the flags have PyBUF_WRITABLE and the \
# tensor is not mutable, as pyarrow.Buffer does."""
# status = "new"
# searched = """\
# 2026-11-26, threads on GitHub: pyarrow Tensor __getbuffer__ PyBUF_WRITABLE readonly is_mutable"""
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
# [tool.gridbuf-finding.runs."pyarrow-12.0.1"]
# date = "2026-11-26"
# exit = 1
# told = "defect: written: b'abcdefgh' became b'\\x7f\\x7f\\x7f\\x7f\\x7f\\x7f\\x7f\\x7f'"
#
# [tool.gridbuf-finding.runs."pyarrow-20.0.0"]
# date = "2026-11-26"
# exit = 1
# told = "defect: written: b'abcdefgh' became b'\\x7f\\x7f\\x7f\\x7f\\x7f\\x7f\\x7f\\x7f'"
#
# [tool.gridbuf-finding.runs."pyarrow-26.0.1"]
# date = "2026-11-26"
# exit = 1
# told = "defect: written: b'abcdefgh' became b'\\x7f\\x7f\\x7f\\x7f\\x7f\\x7f\\x7f\\x7f'"
# ///
"""A pyarrow.Tensor over read-only memory grants a writable buffer"""

import io
import sys

import numpy as np
import pyarrow as pa

text = b"abcdefgh"
before = str(text)
tensor = pa.Tensor.from_numpy(np.frombuffer(text, np.uint8))
try:
    io.BytesIO(b"\x7f" * 8).readinto(tensor)  # asks for PyBUF_WRITABLE
except (BufferError, TypeError) as error:
    print("refused:", error)
    sys.exit(0)
after = str(text)
sys.exit(f"defect: written: {before} became {after}" if before != after else 0)
