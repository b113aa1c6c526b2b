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
# pattern = "released-view"
# severity = "memory"
# expected = "The view is held as long as the tensor uses its memory, so extend raises BufferError."
# impact = """\
# The tensor points to memory that the bytearray has given back. Reads and writes go to whatever \
# is there now."""
# fix = "In torch.frombuffer, keep the view in the deleter of the storage, and release it there."
# status = "new"
# searched = """\
# 2026-11-23, threads on GitHub: torch.frombuffer releases buffer view bytearray resize use \
# after free"""
# picture = """
# tensor = torch.frombuffer(memory)   tensor ——> | memory: 64 bytes |
# memory.extend(bytes(10**7))         tensor ——>   given back          | memory: 10 MB |
# tensor[0] = 1                       writes to whatever is there now"""
#
# [tool.gridbuf-finding.releases]
# date = "2026-11-26"
# "does not run" = ["2.15.0"]
# package = "torch"
# python = "3.11"
# listed = 30
# shown = ["1.13.0", "2.4.1", "2.8.0", "2.9.0", "2.10.0", "2.13.0", "2.14.0", "2.14.1"]
#
# [tool.gridbuf-finding.replays.affected]
# actual = "every view was released, and the result points into the memory"
# expected = "the view is held as long as the result uses its memory"
# outcome = "FAIL"
#
# [tool.gridbuf-finding.replays.passes]
# outcome = "PASS"
#
# [tool.gridbuf-finding.runs."torch-2.13.0"]
# date = "2026-11-25"
# exit = 1
# told = "defect: the bytearray moved under the tensor"
# ///
"""torch.frombuffer releases the view, and the tensor still points into its memory"""

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
