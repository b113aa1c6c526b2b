# /// script
# requires-python = "==3.12.*"
# dependencies = ["warp-lang==1.19.0", "numpy==2.5.5"]
#
# [tool.gridbuf-finding]
# library = "Warp"
# side = "producer"
# target = "warp.readonly"
# rule = "AI-25"
# plan = '{"readonly":true}'
# severity = "memory"
# expected = "The flag in data is true over memory that cannot be written, or warp.array copies it."
# impact = "A consumer that writes to the array changes constant data, or the process ends."
# fix = """\
# In warp.array(data, copy=False), keep NumPy's writeable flag, and write it into data of \
# __array_interface__."""
# status = "new"
# searched = """\
# 2026-11-30, threads on GitHub: NVIDIA warp array copy=False read-only numpy writeable flag \
# array interface"""
#
# [tool.gridbuf-finding.replays.affected]
# actual = "the array interface says writable"
# expected = "read-only, as the memory is mapped"
# outcome = "FAIL"
#
# [tool.gridbuf-finding.runs."warp-lang-1.19.0"]
# date = "2026-11-30"
# exit = 1
# told = "defect: the flag is False over memory of bytes"
# ///
"""An array of Warp over read-only NumPy memory says writable in __array_interface__"""

import sys

import numpy as np
import warp

warp.config.quiet = True
source = np.frombuffer(bytes(16), "f4")
array = warp.array(source, dtype=warp.float32, device="cpu", copy=False)
address, readonly = array.__array_interface__["data"]
is_shared = address == source.ctypes.data
sys.exit("defect: the flag is False over memory of bytes" if is_shared and not readonly else 0)
