# /// script
# requires-python = "==3.12.*"
# dependencies = ["warp-lang==1.19.0", "numpy==2.5.5"]
#
# [tool.gridbuf-finding]
# library = "Warp"
# side = "producer"
# target = "warp"
# rule = "XA-04"
# plan = '{"dtype":"bfloat16"}'
# severity = "values"
# expected = "Both interfaces name the same element type. What a typestr cannot name is refused."
# impact = "NumPy reads bit patterns, 16320 for 1.5."
# fix = """\
# In __array_interface__ of a warp.bfloat16 array, raise AttributeError, so that consumers use \
# DLPack."""
# status = "new"
# searched = """\
# 2026-11-23, threads on GitHub: NVIDIA warp from_dlpack byte_offset lanes vector dtype strides \
# bfloat16 array interface"""
# counter = """\
# bfloat16 has no typestr, so any answer of the array interface is a substitute, and PyTorch and \
# JAX give others."""
# counter_link = "https://github.com/pytorch/pytorch/issues/143042"
#
# [tool.gridbuf-finding.releases]
# date = "2026-11-24"
# "does not run" = ["0.2.0", "0.6.2", "0.9.0", "0.11.0", "0.13.0", "0.15.0", "1.4.0", "1.9.0", "1.12.1"]
# package = "warp-lang"
# python = "3.12"
# listed = 54
# shown = ["1.13.0", "1.15.0", "1.19.0"]
#
# [tool.gridbuf-finding.replays.affected]
# outcome = "PASS"
#
# [tool.gridbuf-finding.runs."warp-lang-1.19.0"]
# date = "2026-11-25"
# exit = 1
# told = "defect: 1.5 is read as 16320"
# ///
"""A bfloat16 array of Warp says <u2 in __array_interface__"""

import sys

import numpy as np
import warp

warp.config.quiet = True
array = warp.full(2, 1.5, dtype=warp.bfloat16, device="cpu")
values = np.asarray(array).tolist()
sys.exit(f"defect: 1.5 is read as {values[0]}" if values[0] != 1.5 else 0)
