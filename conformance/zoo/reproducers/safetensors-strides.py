# /// script
# requires-python = "==3.12.*"
# dependencies = ["safetensors==0.8.0", "numpy==2.4.6"]
#
# [tool.gridbuf-finding]
# library = "safetensors"
# side = "consumer"
# target = "zoo/consumers.py:safetensors_saved"
# rule = "AI-22"
# also_rules = ["PB-32", "XA-15"]
# plan = '{"shape":[2,3],"dtype":"float32","layout":[1,0],"export":"array-interface"}'
# passes = "numpy-2.5.5"
# passes_target = "numpy.asarray"
# why = """\
# strides say where each element is (array interface, key strides; buffer protocol, strides): a \
# consumer uses them or refuses what is not row-major. The documentation asks for dense arrays, \
# which one in column-major order is."""
# seen = """\
# [[1, 2, 3], [4, 5, 6]] in column-major order comes back as other numbers, without an error."""
# status = "reported"
# tracker = "https://github.com/safetensors/safetensors/issues/825"
# picture = """
#
# np.broadcast_to(x, (1000, 1000)): 8 bytes, strides (0, 0)
# memory   | x |  not the array's …
# written  |———— 8,000,000 bytes ————>"""
# ///
"""numpy.save writes the memory of an array without regard to its strides; of a broadcast array it writes memory behind it."""

import sys

import numpy as np
from safetensors.numpy import load, save

source = np.arange(1, 7, dtype="f4").reshape(3, 2).T
try:
    copy = load(save({"x": source}))["x"]
except (TypeError, ValueError, RuntimeError) as error:
    print("refused:", error)
    sys.exit(0)
sys.exit(f"defect: {source.tolist()} became {copy.tolist()}" if (copy != source).any() else 0)
