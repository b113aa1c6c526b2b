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
