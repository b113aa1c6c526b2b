# /// script
# requires-python = "==3.13.*"
# dependencies = ["jax==0.12.0.1", "jaxlib==0.12.0.1", "numpy==2.5.5"]
#
# [tool.gridbuf-finding]
# library = "JAX"
# side = "consumer"
# target = "jax.dlpack.from_dlpack"
# rule = "DP-20"
# plan = '{"export":"dlpack"}'
# also_affected = ["jax-0.10.2"]
# passes = "numpy-2.5.5"
# passes_target = "numpy.from_dlpack"
# severity = "values"
# expected = """\
# copy=True always copies, so the first element stays 0 when 7 is written to the source."""
# impact = "A later write to the source changes an array that JAX treats as immutable."
# fix = "In jax.dlpack.from_dlpack, pass copy=True on to the producer, or copy the imported array."
# status = "new"
# searched = """\
# 2026-11-24, threads on GitHub: jax.dlpack.from_dlpack copy=True shares memory does not copy"""
#
# [tool.gridbuf-finding.releases]
# date = "2026-11-24"
# "does not run" = ["0.0", "0.2.18", "0.4.14", "0.4.27", "0.4.30", "0.4.31", "0.4.33"]
# gone = ["0.4.34", "0.5.1", "0.7.0", "0.8.0"]
# package = "jax"
# python = "3.13"
# listed = 193
# shown = ["0.8.1", "0.8.3", "0.12.0.1"]
#
# [tool.gridbuf-finding.replays.affected]
# actual = "the exported memory"
# expected = "separate memory, after copy=True"
# note = "called with copy=True"
# outcome = "FAIL"
#
# [tool.gridbuf-finding.replays.passes]
# note = "called with copy=True"
# outcome = "PASS"
#
# [tool.gridbuf-finding.runs."jax-0.10.2"]
# date = "2026-11-25"
# exit = 1
# told = "defect: a write to the source made element 0 of the copy 7.0"
#
# [tool.gridbuf-finding.runs."jax-0.12.0.1"]
# date = "2026-11-25"
# exit = 1
# told = "defect: a write to the source made element 0 of the copy 7.0"
# ///
"""jax.dlpack.from_dlpack(x, copy=True) shares the memory of x"""

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
