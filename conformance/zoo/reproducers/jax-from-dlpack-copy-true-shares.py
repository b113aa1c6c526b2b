"""jax.dlpack.from_dlpack(x, copy=True) shares the memory of x."""

import sys

import jax
import numpy as np

memory = np.zeros(2048, np.uint8)
start = -memory.ctypes.data % 64  # JAX shares memory that begins at a multiple of 64 bytes
source = memory[start : start + 1024].view(np.float32)
imported = jax.dlpack.from_dlpack(source, copy=True)
source[0] = 7
value = float(imported[0])
sys.exit(f"defect: a write to the source made element 0 of the copy {value}" if value else 0)
