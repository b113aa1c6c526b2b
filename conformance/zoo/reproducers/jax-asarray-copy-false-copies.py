"""jax.numpy.asarray(x, copy=False) copies a buffer without an error."""

import sys

import jax
import numpy as np

memory = np.zeros(2048, np.uint8)
start = -memory.ctypes.data % 64  # JAX shares memory that begins at a multiple of 64 bytes
source = memory[start : start + 1024].view(np.float32)
try:
    shared = jax.numpy.asarray(memoryview(source), copy=False)
except ValueError as error:
    print(f"refused: {error}")
    sys.exit(0)
address = shared.unsafe_buffer_pointer()
is_copy = address != source.ctypes.data
sys.exit("defect: the array is a copy, after copy=False" if is_copy else 0)
