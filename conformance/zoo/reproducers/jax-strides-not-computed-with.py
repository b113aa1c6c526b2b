# /// script
# requires-python = "==3.10.*"
# dependencies = ["jax==0.4.18", "jaxlib==0.4.18", "numpy==1.26.4", "scipy==1.11.4"]
#
# [tool.gridbuf-finding]
# library = "JAX"
# side = "consumer"
# target = "zoo/consumers.py:jax_computed"
# rule = "DP-30"
# plan = '{"shape":[2,3],"layout":[1,0],"export":"dlpack-legacy"}'
# passes = "jax-0.12.0.1"
# why = """\
# The imported array has the values of the tensor; JAX forgot the strides as soon as it computed \
# with them."""
# seen = """\
# b = jax.dlpack.from_dlpack(numpy.arange(4).reshape(2, 2).T): print(b) shows [[0 2] [1 3]], \
# b[0, 1] is 1."""
# status = "fixed"
# fixed_in = "0.10.2"
# tracker = "https://github.com/jax-ml/jax/issues/17784"
# ///
"""JAX forgets the strides of an imported array when it computes with it."""

import sys

import jax
import numpy as np

jax.config.update("jax_enable_x64", True)
source = np.arange(6).reshape(2, 3).T
imported = jax.dlpack.from_dlpack(source)
element = int(imported[0, 1])
sys.exit(f"defect: element [0, 1] is {element}, not 3" if element != source[0, 1] else 0)
