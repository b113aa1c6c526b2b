# /// script
# requires-python = "==3.13.*"
# dependencies = ["jax==0.12.0.1", "jaxlib==0.12.0.1", "numpy==2.5.5"]
#
# [tool.gridbuf-finding]
# library = "JAX"
# side = "consumer"
# target = "jax.numpy.asarray"
# rule = "XA-19"
# plan = '{"export":"buffer"}'
# also_affected = ["jax-0.10.2"]
# passes = "numpy-2.5.5"
# passes_target = "numpy.asarray"
# why = """\
# Array API, asarray: copy=False never copies input with a buffer, and raises ValueError if a \
# copy is necessary. JAX's own documentation says the same."""
# seen = """\
# A memoryview of 256 float32 at a multiple of 64 bytes: the result has another address, and no \
# error is raised."""
# status = "new"
# searched = """\
# 2026-11-24, threads on GitHub: jnp.asarray copy=False silently copies buffer, should raise \
# ValueError array API"""
# ///
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
