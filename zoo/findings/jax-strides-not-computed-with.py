# /// script
# requires-python = "==3.10.*"
# dependencies = ["jax==0.4.18", "jaxlib==0.4.18", "numpy==1.26.4", "scipy==1.11.4"]
#
# [tool.gridbuf-finding]
# library = "JAX"
# side = "consumer"
# target = "zoo/consumers.py:jax_computed"
# rule = "DP-30"
# also_rules = ["XA-15"]
# plan = '{"shape":[2,3],"layout":[1,0],"export":"dlpack-legacy"}'
# passes = "jax-0.12.0.1"
# severity = "values"
# expected = "Element [0, 1] is 3, that of the source."
# impact = """\
# An imported array that is not row-major has other values in computations, without an error."""
# fix = "In jax.dlpack.from_dlpack, copy or refuse a tensor whose strides are not row-major."
# status = "fixed"
# fixed_in = "0.4.27"
# tracker = "https://github.com/jax-ml/jax/issues/17784"
#
# [tool.gridbuf-finding.releases]
# date = "2026-11-26"
# "does not run" = ["0.0", "0.1.73", "0.3.4", "0.3.23", "0.4.7", "0.4.12", "0.4.14", "0.4.16", "0.4.17", "0.10.2"]
# gone = ["0.4.27", "0.4.29", "0.4.33"]
# package = "jax"
# python = "3.10"
# listed = 175
# shown = ["0.4.18", "0.4.25", "0.4.26"]
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
# date = "2026-11-26"
# exit = 0
# told = ""
#
# [tool.gridbuf-finding.runs."jax-0.4.18"]
# date = "2026-11-26"
# exit = 1
# told = "defect: element [0, 1] is 1, not 3"
# ///
"""JAX forgets the strides of an imported array when it computes with it."""

import sys

import jax
import numpy as np

jax.config.update("jax_enable_x64", True)
source = np.arange(6).reshape(2, 3).T
imported = jax.dlpack.from_dlpack(source)
try:
    element = int(imported[0, 1])
except AssertionError as error:  # of XLA, on the layout
    print("refused:", error)
    sys.exit(0)
sys.exit(f"defect: element [0, 1] is {element}, not 3" if element != source[0, 1] else 0)
