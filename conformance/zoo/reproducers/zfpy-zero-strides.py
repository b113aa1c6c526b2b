"""zfpy.compress_numpy reads past the memory of a broadcast array."""

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
