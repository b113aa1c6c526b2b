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
#
# [tool.gridbuf-finding.releases]
# date = "2026-11-26"
# "does not run" = ["1.0.20210525", "1.0.20230517"]
# package = "ncnn"
# python = "3.12"
# listed = 24
# shown = ["1.0.20230816", "1.0.20240102", "1.0.20241226", "1.0.20250916", "1.0.20260114", "1.0.20260526", "1.0.20261020"]
#
# [tool.gridbuf-finding.replays.affected]
# actual = "3.3611044896826437e-18"
# expected = "2.9825357489999e-27 at element [0, 1]"
# outcome = "FAIL"
#
# [tool.gridbuf-finding.replays.passes]
# outcome = "PASS"
#
# [tool.gridbuf-finding.runs."ncnn-1.0.20261020"]
# date = "2026-11-26"
# exit = 1
# told = "defect: the process died of signal 11"
# ///
"""ncnn.Mat(buffer) ignores strides: of a broadcast array it reads memory behind it"""

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
