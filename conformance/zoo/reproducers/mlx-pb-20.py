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
# why = """\
# format is struct syntax with PEP 3118's additions; 'bfloat16' is b, f and letters without a \
# meaning."""
# seen = "memoryview(a).format is 'bfloat16'."
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
