# /// script
# requires-python = "==3.12.*"
# dependencies = ["PyQt6==6.11.0"]
#
# [tool.gridbuf-finding]
# library = "PyQt6"
# side = "producer"
# target = "pyqt6"
# rule = "PB-24"
# plan = '{"dtype":"uint8"}'
# passes = "cpython-3.13.0"
# passes_target = "bytearray"
# severity = "memory"
# expected = "clear and squeeze raise BufferError while a memoryview of the array is open."
# impact = "The memory is freed under the open memoryview. Reading it crashes the process."
# fix = """\
# In PyQt6, count the exports of a QByteArray in its getbuffer function, and raise BufferError \
# from methods that resize while the count is not 0."""
# status = "new"
# searched = """\
# 2026-11-23, threads on GitHub, not the mailing list of Riverbank Computing: QByteArray buffer \
# protocol memoryview resize while exported crash PySide6 PyQt6"""
# picture = """
# view = memoryview(array)          buf ——> | 4 MiB |
# array.clear(); array.squeeze()    buf ——> not mapped
# view[0]                           the process ends"""
#
# [tool.gridbuf-finding.releases]
# date = "2026-11-24"
# "does not run" = ["6.12.0"]
# package = "PyQt6"
# python = "3.12"
# listed = 32
# shown = ["6.0.0", "6.11.0"]
#
# [tool.gridbuf-finding.replays.affected]
# actual = "the exported memory was unmapped"
# expected = "append() refused, or memory kept"
# outcome = "FAIL"
#
# [tool.gridbuf-finding.replays.passes]
# outcome = "PASS"
#
# [tool.gridbuf-finding.runs."pyqt6-6.11.0"]
# date = "2026-11-25"
# exit = 1
# told = "defect: the process died of signal 11"
# ///
"""QByteArray of PyQt6 frees its memory while a buffer is exported"""

import subprocess
import sys

from PyQt6.QtCore import QByteArray

if len(sys.argv) < 2:
    died = subprocess.run([sys.executable, __file__, "child"]).returncode
    sys.exit(f"defect: the process died of signal {-died}" if died < 0 else 2 * bool(died))

array = QByteArray(b"x" * 2**22)
view = memoryview(array)
try:
    array.clear()
    array.squeeze()
except BufferError as error:
    print("refused:", error)
print(view[0])
