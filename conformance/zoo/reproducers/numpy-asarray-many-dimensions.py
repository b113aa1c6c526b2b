"""numpy.asarray writes a shape of 1000 dimensions past a fixed array."""

import subprocess
import sys

import numpy as np

if len(sys.argv) < 2:
    died = subprocess.run([sys.executable, __file__, "child"]).returncode
    sys.exit(f"defect: the process died of signal {-died}" if died < 0 else 2 * bool(died))


class Wide:
    memory = np.zeros(1)
    __array_interface__ = dict(memory.__array_interface__, shape=(1,) * 1000)


try:
    np.asarray(Wide())
except ValueError as error:
    print("refused:", error)
