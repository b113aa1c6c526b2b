# /// script
# requires-python = "==3.11.*"
# dependencies = ["torch==2.13.0", "numpy==2.4.6"]
#
# [tool.gridbuf-finding]
# library = "PyTorch"
# side = "producer"
# target = "torch.negative"
# rule = "XA-08"
# plan = '{}'
# why = """\
# A DLPack tensor describes the elements in memory, and what it cannot describe is refused \
# (array API, __dlpack__). The imaginary part of a conjugated tensor is a view whose elements \
# are the negatives of its memory. The conjugate bit is refused, the negative bit is not."""
# seen = """\
# np.from_dlpack(torch.tensor([1 - 2j, 3 - 4j]).conj().imag) is [-2, -4], and the tensor is [2, \
# 4]."""
# status = "new"
# searched = """\
# 2026-11-24, threads on GitHub: pytorch __dlpack__ negative bit is_neg tensor export wrong \
# values resolve_neg"""
# picture = """
# tensor      |  2 |  4 |     negative bit: element = -memory
# memory      | -2 | -4 |
# NumPy       | -2 | -4 |     reads the memory
# """
# ///
"""A tensor of PyTorch with the negative bit exports the negatives of its elements by DLPack."""

import sys

import numpy as np
import torch

tensor = torch.tensor([1 - 2j, 3 - 4j]).conj().imag
assert tensor.is_neg() and tensor.tolist() == [2.0, 4.0]
try:
    exported = np.from_dlpack(tensor).tolist()
except BufferError:
    sys.exit(0)
sys.exit(f"defect: {tensor.tolist()} is read as {exported}" if exported != [2.0, 4.0] else 0)
