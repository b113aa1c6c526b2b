# /// script
# requires-python = "==3.13.*"
# dependencies = ["onnxruntime==1.24.2", "numpy==2.5.5"]
#
# [tool.gridbuf-finding]
# library = "ONNX Runtime"
# side = "consumer"
# target = "zoo/consumers.py:onnxruntime_from_dlpack"
# rule = "DP-11"
# also_rules = ["DP-05", "DP-32"]
# plan = '{"export":"dlpack:other-form"}'
# passes = "onnxruntime-1.31.1"
# why = """\
# A consumer takes capsules of the names dltensor and dltensor_versioned and refuses the rest. \
# PyCapsule_GetPointer's NULL is used without a check: for a versioned capsule, for a used one, \
# and for an object that is not a capsule."""
# seen = """\
# OrtValue.from_dlpack(numpy.zeros(3, 'f4').__dlpack__(max_version=(1, 0)), False): SIGSEGV in \
# 1.24.2, an error in 1.31.1."""
# status = "fixed"
# fixed_in = "1.31.1"
# tracker = "https://github.com/microsoft/onnxruntime/issues/24095"
# ///
"""OrtValue.from_dlpack does not check its argument: an object that is not a legacy capsule is a crash."""

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
