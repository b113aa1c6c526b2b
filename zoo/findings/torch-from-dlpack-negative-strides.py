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
# also_rules = ["DX-03", "DX-08", "DX-11", "DL-19", "DL-23", "DL-28", "XA-15"]
# plan = '{"shape":[2],"views":[["reverse",0]]}'
# also_affected = ["torch-1.12.1"]
# passes = "numpy-2.5.5"
# passes_target = "numpy.from_dlpack"
# severity = "memory"
# expected = """\
# Strides are signed. A consumer that has no negative strides refuses the tensor with an \
# exception."""
# impact = "The process aborts on a reversed NumPy array."
# fix = "In torch.from_dlpack, raise BufferError if a stride is negative. 2.14.0 does it."
# status = "fixed"
# fixed_in = "2.14.0"
# tracker = "https://github.com/pytorch/pytorch/issues/188023"
#
# [tool.gridbuf-finding.releases]
# date = "2026-11-26"
# "does not run" = ["2.15.0"]
# gone = ["2.14.0", "2.14.1"]
# package = "torch"
# python = "3.11"
# listed = 30
# shown = ["1.13.0", "2.4.1", "2.8.0", "2.9.0", "2.10.0", "2.13.0"]
#
# [tool.gridbuf-finding.replays.affected]
# actual = "the process died by SIGABRT at step consume, in dlpack.py:212 from_dlpack"
# expected = "the process answers and lives on"
# outcome = "CRASH"
#
# [tool.gridbuf-finding.replays.passes]
# outcome = "PASS"
#
# [tool.gridbuf-finding.runs."torch-1.12.1"]
# date = "2026-11-25"
# exit = 1
# told = "defect: the process died of signal 6"
#
# [tool.gridbuf-finding.runs."torch-2.13.0"]
# date = "2026-11-25"
# exit = 1
# told = "defect: the process died of signal 6"
# ///
"""torch.from_dlpack of an array with a negative stride aborts the process"""

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
