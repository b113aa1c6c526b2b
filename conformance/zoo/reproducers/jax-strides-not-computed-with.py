"""JAX forgets the strides of an imported array when it computes with it."""

import sys

import jax
import numpy as np

jax.config.update("jax_enable_x64", True)
source = np.arange(6).reshape(2, 3).T
imported = jax.dlpack.from_dlpack(source)
element = int(imported[0, 1])
sys.exit(f"defect: element [0, 1] is {element}, not 3" if element != source[0, 1] else 0)
