# /// script
# requires-python = "==3.12.*"
# dependencies = ["openvino==2026.4.1", "numpy==2.4.6"]
#
# [tool.gridbuf-finding]
# library = "OpenVINO"
# side = "consumer"
# target = "zoo/consumers.py:openvino_tensor"
# rule = "AI-34"
# also_rules = ["AS-05", "PB-20"]
# plan = '{"dtype":"float32","byteorder":"swapped","export":"array-interface"}'
# passes = "numpy-2.5.5"
# passes_target = "numpy.asarray"
# why = """\
# The first character of typestr is the byte order: a consumer uses it or refuses the array \
# (AI-34). The binding looks at the kind and the size of a NumPy array's type, and does not \
# convert the bytes."""
# seen = "[0.0, 1.0] as '>f4' becomes [0.0, 4.6e-41], without an error."
# status = "new"
# searched = "2026-11-23, threads on GitHub: openvino Tensor numpy big-endian byte order"
# ///
"""openvino.Tensor reads big-endian arrays as little-endian ones."""

import sys

import numpy as np
import openvino

source = np.arange(4, dtype=">f4")
try:
    copy = openvino.Tensor(source).data
except (TypeError, ValueError, RuntimeError) as error:
    print("refused:", error)
    sys.exit(0)
sys.exit(f"defect: {source.tolist()} became {copy.tolist()}" if (copy != source).any() else 0)
