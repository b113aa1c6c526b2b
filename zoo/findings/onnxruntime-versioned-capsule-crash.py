# /// script
# requires-python = "==3.13.*"
# dependencies = ["onnxruntime==1.24.2", "numpy==2.5.5"]
#
# [tool.gridbuf-finding]
# library = "ONNX Runtime"
# side = "consumer"
# target = "onnxruntime.OrtValue.from_dlpack"
# rule = "DP-11"
# also_rules = ["DP-05", "DP-32"]
# plan = '{"export":"dlpack:other-form"}'
# passes = "onnxruntime-1.31.1"
# severity = "memory"
# expected = "A capsule of another name is refused with an error."
# impact = "The process crashes on a versioned capsule."
# fix = "In from_dlpack, test the name of the capsule before its pointer is used. 1.31.0 does it."
# status = "fixed"
# fixed_in = "1.31.0"
# tracker = "https://github.com/microsoft/onnxruntime/issues/24095"
# counter = """\
# The function is private, and the capsule is not legal input for it: without max_version a \
# producer returns a legacy capsule."""
# counter_link = "https://github.com/microsoft/onnxruntime/issues/24095"
#
# [tool.gridbuf-finding.releases]
# date = "2026-11-30"
# gone = ["1.20.0", "1.20.1", "1.31.0", "1.31.1", "1.32.0"]
# listed = 23
# package = "onnxruntime"
# python = "3.13"
# series = 13
# shown = ["1.21.0", "1.21.1", "1.22.1", "1.23.2", "1.24.2", "1.24.4", "1.25.0", "1.25.1", "1.26.0", "1.27.0", "1.28.0", "1.29.0", "1.30.0"]
#
# [tool.gridbuf-finding.replays.affected]
# actual = "the process died by SIGSEGV at step consume, in consumers.py:43 onnxruntime_from_dlpack"
# expected = "the process answers and lives on"
# outcome = "CRASH"
#
# [tool.gridbuf-finding.replays.passes]
# note = "refused: TypeError"
# outcome = "PASS"
#
# [tool.gridbuf-finding.runs."onnxruntime-1.24.2"]
# date = "2026-11-25"
# exit = 1
# told = "defect: the process died of signal 11"
#
# [tool.gridbuf-finding.runs."onnxruntime-1.31.1"]
# date = "2026-11-25"
# exit = 0
# told = "refused: from_dlpack expected a valid DLPack capsule named 'dltensor'"
# ///
"""onnxruntime's OrtValue.from_dlpack does not check its argument: an object that is not a legacy capsule is a crash"""

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
