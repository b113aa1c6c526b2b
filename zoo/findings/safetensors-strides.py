# /// script
# requires-python = "==3.12.*"
# dependencies = ["safetensors==0.8.0", "numpy==2.4.6"]
#
# [tool.gridbuf-finding]
# library = "safetensors"
# side = "consumer"
# target = "zoo/consumers.py:safetensors_saved"
# rule = "AI-22"
# also_rules = ["PB-32", "XA-15"]
# plan = '{"shape":[2,3],"dtype":"float32","layout":[1,0],"export":"array-interface"}'
# passes = "numpy-2.5.5"
# passes_target = "numpy.asarray"
# severity = "memory"
# expected = "The values of the array are written, or the array is refused."
# impact = "save reads memory behind the array, and the process crashes."
# fix = """\
# In safetensors.numpy.save, copy arrays that are not C-contiguous with numpy.ascontiguousarray, \
# or raise ValueError."""
# source = "NumPy reference, ndarray.strides"
# source_link = "https://numpy.org/doc/2.2/reference/generated/numpy.ndarray.strides.html"
# status = "reported"
# tracker = "https://github.com/safetensors/safetensors/issues/825"
# picture = """
#
# np.broadcast_to(x, (1000, 1000)): 8 bytes, strides (0, 0)
# memory   | x |  not the array's …
# written  |———— 8,000,000 bytes ————>"""
# counter = "The documentation of save asks for tensors that are contiguous and dense."
# counter_link = "https://huggingface.co/docs/safetensors/v0.3.2/api/numpy"
#
# [tool.gridbuf-finding.releases]
# date = "2026-11-30"
# "does not run" = ["0.0.1", "0.3.3"]
# gone = ["0.4.0", "0.4.2", "0.4.5", "0.5.0", "0.5.3", "0.6.2", "0.7.0"]
# listed = 28
# package = "safetensors"
# python = "3.12"
# series = 5
# shown = ["0.8.0"]
#
# [tool.gridbuf-finding.replays.affected]
# actual = "3.3611044896826437e-18"
# expected = "2.9825357489999e-27 at element [0, 1]"
# outcome = "FAIL"
#
# [tool.gridbuf-finding.replays.passes]
# outcome = "PASS"
#
# [tool.gridbuf-finding.runs."safetensors-0.8.0"]
# date = "2026-11-26"
# exit = 1
# told = "defect: the process died of signal 11"
# ///
"""safetensors.numpy.save writes the memory of an array without regard to its strides: of a broadcast array it reads memory behind it"""

import subprocess
import sys

import numpy as np
from safetensors.numpy import load, save

if len(sys.argv) < 2:
    died = subprocess.run([sys.executable, __file__, "child"]).returncode
    sys.exit(f"defect: the process died of signal {-died}" if died < 0 else 2 * bool(died))

source = np.broadcast_to(np.ones(1, "f4"), (4096, 4096))  # one element, strides (0, 0)
try:
    copy = load(save({"x": source}))["x"]
except (TypeError, ValueError, RuntimeError) as error:
    print("refused:", error)
    sys.exit(0)
sys.exit("other numbers than 1 came back" if (copy != source).any() else 0)
