"""A bfloat16 array of MLX has the buffer format 'bfloat16'."""

import sys

import mlx.core as mx

text = memoryview(mx.zeros(2, dtype=mx.bfloat16)).format
sys.exit(f"defect: the format is {text!r}" if text == "bfloat16" else 0)
