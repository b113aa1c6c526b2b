"""torch.frombuffer releases the view, and the tensor still points into its memory."""

import sys

import torch

memory = bytearray(64)
tensor = torch.frombuffer(memory, dtype=torch.uint8)
try:
    memory.extend(bytes(10**7))
except BufferError as error:
    print("held:", error)
    sys.exit(0)
moved = torch.frombuffer(memory, dtype=torch.uint8).data_ptr() != tensor.data_ptr()
sys.exit("defect: the bytearray moved under the tensor" if moved else 0)
