# /// script
# requires-python = "==3.12.*"
# dependencies = ["ncnn==1.0.20261020", "numpy==2.4.6"]
#
# [tool.gridbuf-finding]
# library = "ncnn"
# side = "consumer"
# target = "zoo/consumers.py:ncnn_mat"
# rule = "PB-32"
# also_rules = ["XA-15"]
# plan = '{"shape":[2,3],"dtype":"float32","layout":[1,0],"export":"buffer"}'
# passes = "numpy-2.5.5"
# passes_target = "numpy.asarray"
# severity = "memory"
# expected = "The matrix has the values of the array, or the array is refused."
# impact = "The copy reads memory that is not the array's, and the process crashes."
# fix = """\
# In the constructor of ncnn.Mat from a buffer, compare the strides with those of a row-major \
# array, and refuse other ones."""
# status = "reported"
# tracker = "https://github.com/Tencent/ncnn/issues/3082"
# counter = """\
# The author of the Python interface answers that Mat shares the memory, and that the caller has \
# to call numpy.ascontiguousarray first."""
# counter_link = "https://github.com/Tencent/ncnn/issues/3082"
# ///
"""Mat(buffer) ignores strides: of a broadcast array it reads memory behind it."""

import subprocess
import sys

import ncnn
import numpy as np

if len(sys.argv) < 2:
    died = subprocess.run([sys.executable, __file__, "child"]).returncode
    sys.exit(f"defect: the process died of signal {-died}" if died < 0 else 2 * bool(died))

source = np.broadcast_to(np.ones(1, "f4"), (4096, 4096))  # one element, strides (0, 0)
try:
    copy = np.array(ncnn.Mat(source))
except (TypeError, ValueError, RuntimeError) as error:
    print("refused:", error)
    sys.exit(0)
sys.exit("other numbers than 1 came back" if (copy != source).any() else 0)
