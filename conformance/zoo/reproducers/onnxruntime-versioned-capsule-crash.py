"""OrtValue.from_dlpack does not check what it is given: another object than a legacy capsule is a crash."""

import subprocess
import sys

import numpy as np
from onnxruntime.capi._pybind_state import OrtValue

if len(sys.argv) < 2:
    died = subprocess.run([sys.executable, __file__, "child"]).returncode
    sys.exit(f"defect: the process died of signal {-died}" if died < 0 else 2 * bool(died))

try:
    OrtValue.from_dlpack(np.zeros(3, "f4").__dlpack__(max_version=(1, 0)), False)
except Exception as error:
    print("refused:", error)
