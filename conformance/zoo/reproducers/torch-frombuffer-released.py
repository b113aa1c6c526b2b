# /// script
# requires-python = "==3.11.*"
# dependencies = ["torch==2.13.0", "numpy==2.4.6"]
#
# [tool.gridbuf-finding]
# library = "PyTorch"
# side = "consumer"
# target = "torch.frombuffer"
# rule = "PB-35"
# plan = '{"export":"buffer"}'
# passes = "numpy-2.5.5"
# passes_target = "numpy.frombuffer"
# why = """\
# A view has to be held as long as its memory is used (buffer protocol, PyBuffer_Release; \
# PB-35). The exporter may move or free it after the release."""
# seen = """\
# b = bytearray(64); t = torch.frombuffer(b, dtype=torch.uint8); b.extend(b'x' * 10**7) raises \
# no BufferError, and t points to freed memory. numpy.frombuffer makes the same extend raise."""
# status = "new"
# searched = """\
# 2026-11-23, threads on GitHub: torch.frombuffer releases buffer view bytearray resize use \
# after free"""
# ///
"""torch.frombuffer releases the view, and the tensor still points into its memory."""

import sys

import torch

memory = bytearray(64)
tensor = torch.frombuffer(memory, dtype=torch.uint8)
try:
    memory.extend(bytes(10**7))
except BufferError as error:
    print("held:", error)
    sys.exit(0)
moved = torch.frombuffer(memory, dtype=torch.uint8).data_ptr() != tensor.data_ptr()
sys.exit("defect: the bytearray moved under the tensor" if moved else 0)
