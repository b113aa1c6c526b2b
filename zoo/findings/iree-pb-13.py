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
# severity = "values"
# expected = "Memory that is mapped for reading refuses PyBUF_WRITABLE with BufferError."
# impact = "readinto changes memory that MappedMemory says is read-only."
# fix = """\
# In the getbuffer function of MappedMemory, raise BufferError if the flags have PyBUF_WRITABLE \
# and the mapping, made by map(), is read-only."""
# status = "new"
# searched = """\
# 2026-11-23, threads on GitHub: iree runtime python MappedMemory buffer protocol read-only \
# writable getbuffer shape strides"""
#
# [tool.gridbuf-finding.releases]
# date = "2026-11-24"
# gone = ["2.9.0", "3.6.0", "3.9.0", "3.10.0"]
# package = "iree-base-runtime"
# python = "3.12"
# listed = 15
# shown = ["3.11.0", "3.13.0"]
#
# [tool.gridbuf-finding.replays.affected]
# actual = "WRITABLE granted with readonly 1"
# expected = "readonly 0, or a refusal"
# outcome = "FAIL"
#
# [tool.gridbuf-finding.replays.passes]
# note = "every request for writable memory is refused"
# outcome = "PASS"
#
# [tool.gridbuf-finding.runs."iree-base-runtime-3.13.0"]
# date = "2026-11-25"
# exit = 1
# told = "defect: written: b'abcdefgh' became b'\\x7f\\x7f\\x7f\\x7f\\x7f\\x7f\\x7f\\x7f'"
# ///
"""MappedMemory of IREE is read-only and grants a writable buffer"""

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
