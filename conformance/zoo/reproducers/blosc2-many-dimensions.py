"""blosc2.asarray of an array of 64 dimensions ends the process."""

import subprocess
import sys

import blosc2
import numpy as np

if len(sys.argv) < 2:
    died = subprocess.run([sys.executable, __file__, "child"]).returncode
    sys.exit(f"defect: the process died of signal {-died}" if died < 0 else died)

try:
    blosc2.asarray(np.zeros((1,) * 64))
except (RuntimeError, TypeError, ValueError) as error:
    print("refused:", error)
