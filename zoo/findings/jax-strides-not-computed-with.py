# /// script
# requires-python = "==3.12.*"
# dependencies = ["jax==0.6.2", "jaxlib==0.6.2", "numpy==1.26.4", "scipy==1.14.1"]
#
# [tool.gridbuf-finding]
# library = "JAX"
# side = "consumer"
# target = "zoo/consumers.py:jax_computed"
# rule = "DP-30"
# also_rules = ["XA-15"]
# plan = '{"shape":[2,3],"layout":[1,0],"export":"dlpack-legacy"}'
# passes = "jax-0.12.0.1"
# also_affected = ["jax-0.4.18"]
# severity = "values"
# expected = "Element [0, 1] is 1, that of the source."
# impact = """\
# An imported array that is not row-major has other values in computations, without an error."""
# fix = "In jax.dlpack.from_dlpack, copy or refuse a tensor whose strides are not row-major."
# status = "fixed"
# fixed_in = "0.7.2"
# tracker = "https://github.com/jax-ml/jax/issues/17784"
#
# [tool.gridbuf-finding.releases]
# date = "2026-11-30"
# "does not run" = ["0.0", "0.2.8", "0.3.24", "0.4.10", "0.4.16", "0.4.17"]
# gone = ["0.4.27", "0.4.29", "0.4.38", "0.5.3", "0.6.0", "0.7.2", "0.8.0", "0.8.3", "0.9.0.1", "0.9.2", "0.10.2", "0.11.2", "0.12.0.1"]
# listed = 193
# package = "jax"
# python = "3.12"
# series = 9
# shown = ["0.4.18", "0.4.19", "0.4.22", "0.4.25", "0.4.26", "0.6.1", "0.6.2", "0.7.1"]
#
# [tool.gridbuf-finding.replays.affected]
# actual = "4.4481054380428575e+49"
# expected = "1.2303742345927276e-142 at element [0, 1]"
# outcome = "FAIL"
#
# [tool.gridbuf-finding.replays.passes]
# outcome = "PASS"
#
# [tool.gridbuf-finding.runs."jax-0.12.0.1"]
# date = "2026-11-30"
# exit = 0
# told = ""
#
# [tool.gridbuf-finding.runs."jax-0.4.18"]
# date = "2026-11-30"
# exit = 1
# told = "defect: element [0, 1] is 8, not 1"
#
# [tool.gridbuf-finding.runs."jax-0.6.2"]
# date = "2026-11-30"
# exit = 1
# told = "defect: element [0, 1] is 8, not 1"
# ///
"""jax.dlpack.from_dlpack forgets the strides of an imported array when JAX computes with it"""

import sys

import jax
import numpy as np

jax.config.update("jax_enable_x64", True)
memory = np.zeros(2048, np.uint8)
start = -memory.ctypes.data % 64  # JAX shares memory that begins at a multiple of 64 bytes
source = memory[start : start + 1024].view(np.int64).reshape(8, 16).T
source[...] = np.arange(128).reshape(16, 8)
try:
    imported = jax.dlpack.from_dlpack(source)
    element = int((imported + 0)[0, 1])
except (AssertionError, RuntimeError) as error:  # of XLA, on the layout
    print("refused:", error)
    sys.exit(0)
sys.exit(f"defect: element [0, 1] is {element}, not 1" if element != 1 else 0)
