# /// script
# requires-python = "==3.12.*"
# dependencies = ["ncnn==1.0.20261020", "numpy==2.4.6"]
#
# [tool.gridbuf-finding]
# library = "ncnn"
# side = "consumer"
# target = "zoo/consumers.py:ncnn_mat"
# rule = "PB-32"
# plan = '{"shape":[2,3],"dtype":"float32","layout":[1,0],"export":"buffer"}'
# passes = "numpy-2.5.5"
# passes_target = "numpy.asarray"
# why = """\
# strides say where each element is (array interface, key strides; buffer protocol, strides): a \
# consumer uses them or refuses what is not row-major. Mat asks for them and does not look at \
# them."""
# seen = """\
# [[1, 2, 3], [4, 5, 6]] in column-major order comes back as other numbers, without an error."""
# status = "reported"
# tracker = "https://github.com/Tencent/ncnn/issues/3082"
# ///
"""Mat(buffer) ignores strides."""

import sys

import ncnn
import numpy as np

source = np.arange(1, 7, dtype="f4").reshape(3, 2).T
try:
    copy = np.array(ncnn.Mat(source))
except (TypeError, ValueError, RuntimeError) as error:
    print("refused:", error)
    sys.exit(0)
sys.exit(f"defect: {source.tolist()} became {copy.tolist()}" if (copy != source).any() else 0)
