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
# severity = "values"
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
# [tool.gridbuf-finding.releases]
# date = "2026-11-30"
# "does not run" = ["0.2.0", "0.15.0", "1.2.0"]
# listed = 54
# package = "warp-lang"
# python = "3.12"
# series = 18
# shown = ["1.2.1", "1.2.2", "1.3.0", "1.3.3", "1.4.0", "1.4.2", "1.5.1", "1.6.2", "1.7.2", "1.8.1", "1.9.1", "1.10.1", "1.11.1", "1.12.1", "1.13.0", "1.14.0", "1.15.0", "1.16.0", "1.17.0", "1.18.0", "1.19.0"]
#
# [tool.gridbuf-finding.replays.affected]
# actual = "the array interface says writable"
# expected = "read-only, as the memory is mapped"
# outcome = "FAIL"
#
# [tool.gridbuf-finding.runs."warp-lang-1.19.0"]
# date = "2026-11-30"
# exit = 1
# told = "defect: written: abcdefgh became b'\\x00bcdefgh'"
# ///
"""An array of Warp over read-only NumPy memory says writable in __array_interface__"""

import sys

import numpy as np
import warp

warp.config.quiet = True
memory = b"abcdefgh"
source = np.frombuffer(memory, "u1")
array = warp.array(source, dtype=warp.uint8, device="cpu", copy=False)
result = np.asarray(array)
if not result.flags.writeable or array.ptr != source.ctypes.data:
    sys.exit(0)
result[0] = 0
after = bytes(source)
sys.exit(f"defect: written: abcdefgh became {after!r}" if after[0] == 0 else 0)
