# /// script
# requires-python = "==3.12.*"
# dependencies = ["mlx[cpu]==0.32.4", "numpy==2.5.5"]
#
# [tool.gridbuf-finding]
# library = "MLX"
# side = "producer"
# target = "mlx"
# rule = "PB-20"
# plan = '{"dtype":"bfloat16"}'
# severity = "form"
# expected = """\
# The format follows the syntax of the struct module and of PEP 3118. 'bfloat16' does not."""
# impact = "A consumer cannot parse the format. memoryview shows it, and reads no element."
# fix = """\
# In the getbuffer function of mx.array, raise BufferError if the dtype is bfloat16 and the flags \
# have PyBUF_FORMAT."""
# status = "new"
# searched = """\
# 2026-11-23, threads on GitHub: mlx array buffer protocol PyBUF_SIMPLE non-contiguous negative \
# strides getbuffer ignores flags"""
# ///
"""A bfloat16 array of MLX has the buffer format 'bfloat16'."""

import sys

import mlx.core as mx

text = memoryview(mx.zeros(2, dtype=mx.bfloat16)).format
sys.exit(f"defect: the format is {text!r}" if text == "bfloat16" else 0)
