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
#
# [tool.gridbuf-finding.releases]
# date = "2026-11-24"
# gone = ["0.2.0", "0.21.1", "0.26.1", "0.26.5", "0.29.4", "0.31.0", "0.31.1", "0.31.2", "0.32.0"]
# package = "mlx"
# python = "3.12"
# listed = 28
# shown = ["0.32.1", "0.32.2", "0.32.4"]
#
# [tool.gridbuf-finding.replays.affected]
# actual = "'bfloat16' has 'o', which is not a format letter"
# expected = "struct syntax with PEP 3118's additions"
# outcome = "FAIL"
#
# [tool.gridbuf-finding.runs."mlx-0.32.4"]
# date = "2026-11-25"
# exit = 1
# told = "defect: the format is 'bfloat16'"
# ///
"""A bfloat16 array of MLX has the buffer format 'bfloat16'"""

import sys

import mlx.core as mx

text = memoryview(mx.zeros(2, dtype=mx.bfloat16)).format
sys.exit(f"defect: the format is {text!r}" if text == "bfloat16" else 0)
