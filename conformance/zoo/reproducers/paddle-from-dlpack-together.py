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
# ///
"""paddle.from_dlpack forgets the deleters of all but the last of several tensors over the same memory."""

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
