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
