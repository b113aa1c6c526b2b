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
# why = """\
# Data is NULL only for tensors without elements (dlpack.h), and what DLPack cannot describe is \
# refused. FSDP frees the storage of parameters by untyped_storage().resize_(0)."""
# seen = """\
# np.from_dlpack of such a tensor gives an array of three arbitrary numbers; \
# __dlpack__(copy=True) ends the process."""
# status = "reported"
# tracker = "https://github.com/pytorch/pytorch/issues/171676"
# ///
"""A tensor whose storage was freed exports a DLPack tensor with elements at address NULL."""

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
