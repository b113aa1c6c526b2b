# /// script
# requires-python = "==3.12.*"
# dependencies = ["paddlepaddle==3.3.1"]
#
# [tool.gridbuf-finding]
# library = "PaddlePaddle"
# side = "consumer"
# target = "paddle.from_dlpack"
# rule = "DP-31"
# plan = '{"export":"dlpack:together"}'
# passes = "numpy-2.5.5"
# passes_target = "numpy.from_dlpack"
# severity = "leak"
# expected = "The deleter of each of the 4 tensors is called, so that nothing holds the array."
# impact = "An array of which several tensors are open at once is never freed."
# fix = """\
# In paddle.from_dlpack, keep the deleter with each tensor, not in a table by the address of the \
# data."""
# status = "new"
# searched = """\
# 2026-11-25, threads on GitHub: paddle from_dlpack memory leak, deleter not called, same data \
# pointer imported twice"""
#
# [tool.gridbuf-finding.releases]
# date = "2026-11-26"
# "does not run" = ["2.6.2", "3.2.0", "3.2.2"]
# package = "paddlepaddle"
# python = "3.12"
# listed = 9
# shown = ["3.3.0", "3.3.1"]
#
# [tool.gridbuf-finding.replays.affected]
# actual = "the deleter was never called"
# expected = "memory that is freed after the result"
# outcome = "FAIL"
#
# [tool.gridbuf-finding.replays.passes]
# outcome = "PASS"
#
# [tool.gridbuf-finding.runs."paddlepaddle-3.3.1"]
# date = "2026-11-25"
# exit = 1
# told = "defect: the tensors are gone, and 3 of 4 still hold the array"
# ///
"""paddle.from_dlpack forgets the deleters of all but the last of several tensors over the same memory"""

import gc
import sys

import numpy as np
import paddle

array = np.zeros(3)
before = sys.getrefcount(array)
tensors = [paddle.from_dlpack(array) for _ in range(4)]
del tensors
gc.collect()
left = sys.getrefcount(array) - before
sys.exit(f"defect: the tensors are gone, and {left} of 4 still hold the array" if left else 0)
