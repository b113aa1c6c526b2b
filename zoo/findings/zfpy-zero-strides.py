# /// script
# requires-python = "==3.12.*"
# dependencies = ["zfpy==1.0.1.post0", "numpy==2.4.6"]
#
# [tool.gridbuf-finding]
# library = "zfpy"
# side = "consumer"
# target = "zoo/consumers.py:zfpy_compressed"
# rule = "AI-22"
# also_rules = ["PB-32", "XA-15"]
# plan = '{"shape":[2,2],"views":[["newaxis",0],["broadcast",0,3]],"export":"array-interface:zero-stride"}'
# passes = "numpy-2.5.5"
# passes_target = "numpy.asarray"
# severity = "memory"
# expected = """\
# The result has the values of the array, or the array is refused. A stride of 0 repeats an \
# element."""
# impact = "compress_numpy reads memory that is not the array's, and the process crashes."
# fix = """\
# In compress_numpy, copy an array that has a stride of 0: in the C API of zfp it stands for \
# contiguous strides."""
# source = "NumPy reference, ndarray.strides"
# source_link = "https://numpy.org/doc/2.2/reference/generated/numpy.ndarray.strides.html"
# status = "new"
# searched = """\
# 2026-11-24, threads on GitHub: zfpy compress_numpy zero strides broadcast array segfault"""
# picture = """
#
# np.broadcast_to(x, (4096, 4096)): 8 bytes, strides (0, 0)
# memory   | x |  not the array's …
# read     |———— 128 MiB ————>"""
#
# [tool.gridbuf-finding.releases]
# date = "2026-11-24"
# "does not run" = ["0.0.0", "1.0.0"]
# package = "zfpy"
# python = "3.12"
# listed = 5
# shown = ["1.0.1", "1.0.1.post0"]
#
# [tool.gridbuf-finding.replays.affected]
# actual = "the process died by SIGSEGV at step consume, in consumers.py:592 zfpy_compressed"
# expected = "the process answers and lives on"
# outcome = "CRASH"
#
# [tool.gridbuf-finding.replays.passes]
# outcome = "PASS"
#
# [tool.gridbuf-finding.runs."zfpy-1.0.1.post0"]
# date = "2026-11-25"
# exit = 1
# told = "defect: the process died of signal 11"
# ///
"""zfpy.compress_numpy reads past the memory of a broadcast array"""

import subprocess
import sys

import numpy as np
import zfpy

if len(sys.argv) < 2:
    died = subprocess.run([sys.executable, __file__, "child"]).returncode
    sys.exit(f"defect: the process died of signal {-died}" if died < 0 else died)

source = np.broadcast_to(np.ones(1), (4096, 4096))
try:
    copy = zfpy.decompress_numpy(zfpy.compress_numpy(source))
except (TypeError, ValueError) as error:
    print("refused:", error)
    sys.exit(0)
sys.exit("defect: other numbers than 1 came back" if (copy != source).any() else 0)
