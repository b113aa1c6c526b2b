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
