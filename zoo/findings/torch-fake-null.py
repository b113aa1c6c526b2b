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
# severity = "memory"
# expected = "Data is NULL only for tensors without elements, so the export raises BufferError."
# impact = "NumPy makes an array of 3 elements at an address without memory."
# fix = """\
# In torch.Tensor.__dlpack__, raise BufferError for a FakeTensor and at least one element. \
# from_dlpack of NumPy then fails cleanly."""
# status = "new"
# searched = """\
# 2026-11-24, threads on GitHub: pytorch FakeTensor __dlpack__ to_dlpack null data pointer \
# segfault numpy.from_dlpack"""
# counter = """\
# A FakeTensor is made for tracing. PyTorch warns at the export that its data pointer must not be \
# used."""
# counter_link = "https://github.com/pytorch/pytorch/blob/v2.13.0/c10/core/StorageImpl.cpp"
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
# actual = "NULL for shape [3]"
# expected = "data non-NULL for a tensor with elements"
# note = "__dlpack__()"
# outcome = "FAIL"
#
# [tool.gridbuf-finding.runs."torch-2.13.0"]
# date = "2026-11-26"
# exit = 1
# told = "defect: an array of 3 elements is made, but there is no memory"
# ///
"""A FakeTensor of PyTorch, which has no memory, exports a DLPack tensor with elements at address NULL"""

import sys

import numpy as np
import torch
from torch._subclasses.fake_tensor import FakeTensorMode

with FakeTensorMode():
    tensor = torch.zeros(3)
try:
    values = np.from_dlpack(tensor)
except (BufferError, RuntimeError, TypeError):
    sys.exit(0)
sys.exit(f"defect: an array of {values.size} elements is made, but there is no memory")
