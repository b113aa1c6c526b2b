"""gt4py.storage.empty multiplies extents at 32 bits: the array of 4 GiB has a few bytes of memory."""

import subprocess
import sys

import gt4py.storage
import numpy as np

if len(sys.argv) < 2:
    died = subprocess.run([sys.executable, __file__, "child"]).returncode
    sys.exit(f"defect: the process died of signal {-died}" if died < 0 else 2 * bool(died))

array = gt4py.storage.empty((32769, 16384), np.float64, backend="numpy")
print("the array has", array.nbytes, "bytes; reading its last element", flush=True)
print(array[-1, -1])
