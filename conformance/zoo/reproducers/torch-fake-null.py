# /// script
# requires-python = "==3.11.*"
# dependencies = ["torch==2.13.0", "numpy==2.4.6"]
#
# [tool.gridbuf-finding]
# library = "PyTorch"
# side = "producer"
# target = "torch.fake"
# rule = "DL-27"
# also_rules = ["DP-25"]
# plan = '{"shape":[3]}'
# why = """\
# Data is NULL only for tensors without elements (dlpack.h), and what DLPack cannot describe is \
# refused. Meta tensors are refused; fake tensors say that they are on the CPU, and are \
# exported."""
# seen = """\
# np.from_dlpack of torch.zeros(3) made inside FakeTensorMode gives an array of three arbitrary \
# numbers."""
# status = "new"
# searched = """\
# 2026-11-24, threads on GitHub: pytorch FakeTensor __dlpack__ to_dlpack null data pointer \
# segfault numpy.from_dlpack"""
# ///
"""A FakeTensor of PyTorch, which has no memory, exports a DLPack tensor with elements at address NULL."""

import sys
import warnings

import numpy as np
import torch
from torch._subclasses.fake_tensor import FakeTensorMode

warnings.simplefilter("ignore")
with FakeTensorMode():
    tensor = torch.zeros(3)
try:
    values = np.from_dlpack(tensor)
except (BufferError, RuntimeError, TypeError):
    sys.exit(0)
sys.exit(f"defect: an array of {values.size} elements is made, but there is no memory")
