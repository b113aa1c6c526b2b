# /// script
# requires-python = "==3.13.*"
# dependencies = ["pyarrow==26.0.1", "numpy==2.5.5"]
#
# [tool.gridbuf-finding]
# library = "PyArrow"
# side = "producer"
# target = "pyarrow.buffer"
# rule = "PB-24"
# plan = '{"dtype":"int8"}'
# passes = "cpython-3.13.0"
# passes_target = "array"
# severity = "memory"
# expected = "resize raises BufferError while a memoryview of the buffer is open."
# impact = """\
# The memory is freed under the open memoryview. Here reading it crashes the process."""
# fix = """\
# In pyarrow.ResizableBuffer, count the exports in __getbuffer__ and __releasebuffer__, and raise \
# BufferError from resize while the count is not 0."""
# status = "new"
# searched = """\
# 2026-11-26, threads on GitHub: pyarrow ResizableBuffer resize memoryview exported buffer protocol \
# use after free"""
# picture = """
# view = memoryview(buffer)     buf ——> | 4 MiB |
# buffer.resize(2**25)          buf ——> not mapped
# view[0]                       the process ends"""
#
# [tool.gridbuf-finding.replays.affected]
# actual = "the object moved its memory"
# expected = "resize() refused, or the address kept"
# outcome = "FAIL"
#
# [tool.gridbuf-finding.replays.passes]
# outcome = "PASS"
#
# [tool.gridbuf-finding.runs."pyarrow-26.0.1"]
# date = "2026-11-26"
# exit = 1
# told = "defect: the process died of signal 11"
# ///
"""resize of a pyarrow.ResizableBuffer frees its memory while a buffer is exported"""

import subprocess
import sys

import pyarrow as pa

if len(sys.argv) < 2:
    died = subprocess.run([sys.executable, __file__, "child"]).returncode
    sys.exit(f"defect: the process died of signal {-died}" if died < 0 else 2 * bool(died))

# The other pools free the memory too, and keep it mapped.
buffer = pa.allocate_buffer(2**22, memory_pool=pa.system_memory_pool(), resizable=True)
view = memoryview(buffer)
try:
    buffer.resize(2**25)
except BufferError as error:
    print("refused:", error)
    sys.exit(0)
print(view[0])
