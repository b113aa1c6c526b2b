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
