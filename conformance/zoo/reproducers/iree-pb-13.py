# /// script
# requires-python = "==3.12.*"
# dependencies = ["iree-base-runtime==3.13.0", "numpy==2.5.5"]
#
# [tool.gridbuf-finding]
# library = "IREE"
# side = "producer"
# target = "iree"
# rule = "PB-13"
# also_rules = ["PB-06", "PB-08", "PB-09"]
# plan = '{"dtype":"uint8","readonly":true}'
# passes = "numpy-2.5.5"
# passes_target = "numpy"
# why = """\
# The flags of a request say which fields to fill and which memory to grant (buffer protocol, \
# request types). A consumer that asked for PyBUF_WRITABLE writes into memory that is mapped for \
# reading. format is always filled, shape and strides never."""
# seen = "WRITABLE: rc 0, readonly 1."
# status = "new"
# searched = """\
# 2026-11-23, threads on GitHub: iree runtime python MappedMemory buffer protocol read-only \
# writable getbuffer shape strides"""
# ///
"""MappedMemory of IREE is read-only and grants a writable buffer."""

import io
import sys

import iree.runtime as iree
import numpy as np

device = iree.get_device("local-sync")
memory = device.allocator.allocate_buffer_copy(
    memory_type=iree.MemoryType.DEVICE_LOCAL | iree.MemoryType.HOST_VISIBLE,
    allowed_usage=iree.BufferUsage.DEFAULT | iree.BufferUsage.MAPPING,
    device=device,
    buffer=b"abcdefgh",
)
exporter = memory.map()
before = bytes(exporter.asarray((8,), np.dtype("u1")))
try:
    io.BytesIO(b"\x7f" * 8).readinto(exporter)  # asks for PyBUF_WRITABLE
except (BufferError, TypeError) as error:
    print("refused:", error)
    sys.exit(0)
after = bytes(exporter.asarray((8,), np.dtype("u1")))
sys.exit(f"defect: written: {before} became {after}" if before != after else 0)
