# /// script
# requires-python = "==3.12.*"
# dependencies = ["mpi4py==4.1.2", "mpich==5.0.2", "numpy==2.4.6"]
#
# [tool.gridbuf-finding]
# library = "mpi4py"
# side = "producer"
# target = "mpi4py"
# rule = "PB-24"
# plan = '{"dtype":"uint8"}'
# severity = "memory"
# expected = "release() raises BufferError while a memoryview of the buffer is open."
# impact = "The owner frees memory that the open memoryview still shows."
# fix = """\
# Count the exports of MPI.buffer in its getbuffer function, and raise BufferError from release() \
# while the count is not 0."""
# status = "new"
# searched = """\
# 2026-11-24, threads on GitHub: mpi4py MPI.buffer memory release while memoryview exported \
# BufferError"""
# picture = """
# view = memoryview(buffer)      view ——> buffer ——> | owner: 4 MiB |
# buffer.release()               view ——> buffer       | owner: 4 MiB |
# owner.clear()                  view[0] reads            not mapped
# """
#
# [tool.gridbuf-finding.releases]
# date = "2026-11-30"
# "does not run" = ["0.4.0", "3.1.2", "4.0.0", "4.0.3"]
# listed = 23
# package = "mpi4py"
# python = "3.12"
# series = 1
# shown = ["4.1.0", "4.1.2"]
#
# [tool.gridbuf-finding.replays.affected]
# actual = "the object moved its memory"
# expected = "release() refused, or the address kept"
# outcome = "FAIL"
#
# [tool.gridbuf-finding.runs."mpi4py-4.1.2"]
# date = "2026-11-25"
# exit = 1
# told = "defect: release() works under a view of 4194304 bytes, whose memory is freed"
# ///
"""buffer.release() of mpi4py releases memory that a memoryview of the buffer still shows"""

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
