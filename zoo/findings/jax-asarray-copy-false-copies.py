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
# severity = "values"
# expected = """\
# copy=False never copies input with a buffer. If a copy is necessary, asarray raises ValueError."""
# impact = """\
# A program that relies on shared memory works on a copy. A write to the source does not reach the \
# array."""
# fix = """\
# In jax.numpy.asarray, raise ValueError for copy=False wherever the result does not share memory \
# with its argument."""
# status = "new"
# searched = """\
# 2026-11-24, threads on GitHub: jnp.asarray copy=False silently copies buffer, should raise \
# ValueError array API"""
#
# [tool.gridbuf-finding.releases]
# date = "2026-11-26"
# "does not run" = ["0.0", "0.2.18", "0.4.14", "0.4.27", "0.4.30", "0.4.31", "0.4.33"]
# package = "jax"
# python = "3.13"
# listed = 193
# shown = ["0.4.34", "0.5.1", "0.12.0.1"]
#
# [tool.gridbuf-finding.replays.affected]
# actual = "a copy"
# expected = "the exported memory, or an error, after copy=False"
# note = "called with copy=False"
# outcome = "FAIL"
#
# [tool.gridbuf-finding.replays.passes]
# note = "called with copy=True"
# outcome = "PASS"
#
# [tool.gridbuf-finding.runs."jax-0.10.2"]
# date = "2026-11-26"
# exit = 1
# told = "defect: 7.0 was written to the source, the array has 0.0"
#
# [tool.gridbuf-finding.runs."jax-0.12.0.1"]
# date = "2026-11-26"
# exit = 1
# told = "defect: 7.0 was written to the source, the array has 0.0"
# ///
"""jax.numpy.asarray(x, copy=False) copies a buffer without an error"""

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
source[0] = 7
value = float(shared[0])
sys.exit(f"defect: 7.0 was written to the source, the array has {value}" if value != 7 else 0)
