# /// script
# requires-python = "==3.11.*"
# dependencies = ["torch==2.13.0", "numpy==2.4.6"]
#
# [tool.gridbuf-finding]
# library = "PyTorch"
# side = "producer"
# target = "torch.freed"
# rule = "DL-27"
# also_rules = ["DP-25"]
# plan = '{}'
# severity = "memory"
# expected = "Data is NULL only for tensors without elements, so the export raises BufferError."
# impact = "NumPy makes an array of 3 elements at an address without memory."
# fix = """\
# In torch.Tensor.__dlpack__, raise BufferError for a tensor whose storage has 0 bytes and at \
# least one element. from_dlpack of NumPy then fails cleanly."""
# status = "reported"
# tracker = "https://github.com/pytorch/pytorch/issues/171676"
#
# [tool.gridbuf-finding.releases]
# date = "2026-11-26"
# "does not run" = ["1.13.0", "2.15.0"]
# gone = ["2.4.1", "2.8.0"]
# package = "torch"
# python = "3.11"
# listed = 30
# shown = ["2.9.0", "2.10.0", "2.13.0", "2.14.0", "2.14.1"]
#
# [tool.gridbuf-finding.replays.affected]
# actual = "NULL for shape [1]"
# expected = "data non-NULL for a tensor with elements"
# note = "__dlpack__()"
# outcome = "FAIL"
#
# [tool.gridbuf-finding.runs."torch-2.13.0"]
# date = "2026-11-25"
# exit = 1
# told = "defect: an array of 3 elements is made, but the memory is gone"
# ///
"""A PyTorch tensor whose storage was freed exports a DLPack tensor with elements at address NULL"""

import sys

import numpy as np
import torch

tensor = torch.ones(3)
tensor.untyped_storage().resize_(0)
try:
    values = np.from_dlpack(tensor)
except (BufferError, RuntimeError):
    sys.exit(0)
sys.exit(f"defect: an array of {values.size} elements is made, but the memory is gone")
