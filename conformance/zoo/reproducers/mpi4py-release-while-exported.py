"""mpi4py: buffer.release() lets go of memory that a memoryview of the buffer still shows."""

import sys

from mpi4py import MPI

owner = bytearray(1 << 22)
buffer = MPI.buffer.frombuffer(owner)
view = memoryview(buffer)
try:
    buffer.release()
except BufferError:
    sys.exit(0)
try:
    owner.clear()  # a BufferError as long as something refers to the memory
except BufferError:
    sys.exit(0)
sys.exit(f"defect: release() works under a view of {len(view)} bytes, whose memory is freed")
