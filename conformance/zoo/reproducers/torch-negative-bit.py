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
