# /// script
# requires-python = "==3.11.*"
# dependencies = ["torch==2.13.0", "numpy==2.4.6"]
#
# [tool.gridbuf-finding]
# library = "PyTorch"
# side = "consumer"
# target = "torch.from_dlpack"
# also_targets = ["torch.as_tensor"]
# rule = "DP-32"
# also_rules = ["DX-03", "DX-08", "DX-11"]
# plan = '{"shape":[2],"views":[["reverse",0]]}'
# also_affected = ["torch-1.12.1"]
# passes = "numpy-2.5.5"
# passes_target = "numpy.from_dlpack"
# why = """\
# dlpack.h declares strides as int64_t, and NumPy exports negative ones. A consumer may refuse \
# them by an exception; an abort is not an exception."""
# seen = """\
# torch.from_dlpack(numpy.arange(2.)[::-1]) and a hand-written ctypes capsule of shape (2,), \
# strides (-1,): SIGABRT both times."""
# status = "fixed"
# fixed_in = "the trunk"
# tracker = "https://github.com/pytorch/pytorch/issues/188023"
# ///
"""torch.from_dlpack of an array with a negative stride aborts the process."""

import subprocess
import sys

import numpy as np
import torch

if len(sys.argv) < 2:
    died = subprocess.run([sys.executable, __file__, "child"]).returncode
    sys.exit(f"defect: the process died of signal {-died}" if died < 0 else 2 * bool(died))

try:
    torch.from_dlpack(np.arange(2.0)[::-1])
except Exception as error:
    print("refused:", error)
