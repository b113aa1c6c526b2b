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
# severity = "values"
# expected = """\
# A tensor whose elements are not those of its memory is refused with BufferError, as one with the \
# conjugate bit is."""
# impact = "NumPy reads [-2.0, -4.0] for [2.0, 4.0], and no error says so."
# fix = "In torch.Tensor.__dlpack__, raise BufferError if is_neg() is true, as for is_conj()."
# source = "Python array API standard (2025.12), Data interchange"
# source_link = """\
# https://github.com/data-apis/array-api/blob/2025.12/spec/2025.12/design_topics/data_interchange.rst#L91-L105"""
# status = "new"
# searched = """\
# 2026-11-24, threads on GitHub: pytorch __dlpack__ negative bit is_neg tensor export wrong \
# values resolve_neg"""
# picture = """
# tensor      |  2 |  4 |     negative bit: element = -memory
# memory      | -2 | -4 |
# NumPy       | -2 | -4 |     reads the memory
# """
#
# [tool.gridbuf-finding.releases]
# date = "2026-11-26"
# "does not run" = ["2.15.0"]
# package = "torch"
# python = "3.11"
# listed = 30
# shown = ["1.13.0", "2.4.1", "2.8.0", "2.9.0", "2.10.0", "2.13.0", "2.14.0", "2.14.1"]
#
# [tool.gridbuf-finding.replays.affected]
# actual = "-4.1048022430272647e-215 (DL)"
# expected = "4.1048022430272647e-215 at element [0] (the plan)"
# outcome = "FAIL"
#
# [tool.gridbuf-finding.runs."torch-2.13.0"]
# date = "2026-11-25"
# exit = 1
# told = "defect: [2.0, 4.0] is read as [-2.0, -4.0]"
# ///
"""A tensor of PyTorch with the negative bit exports the negatives of its elements by DLPack"""

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
