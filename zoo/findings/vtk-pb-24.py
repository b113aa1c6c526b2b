# /// script
# requires-python = "==3.12.*"
# dependencies = ["vtk==9.7.2", "numpy==2.5.5"]
#
# [tool.gridbuf-finding]
# library = "VTK"
# side = "producer"
# target = "vtk"
# rule = "PB-24"
# plan = '{"dtype":"uint8"}'
# passes = "cpython-3.13.0"
# passes_target = "bytearray"
# severity = "memory"
# expected = "Initialize raises BufferError while a memoryview of the array is open."
# impact = "The memory is freed under the open memoryview. Reading it crashes the process."
# fix = """\
# Count the exports of vtkDoubleArray and the other arrays, and raise BufferError from methods \
# that free or move memory, such as Initialize."""
# status = "new"
# searched = """\
# 2026-11-25, threads on GitHub, not gitlab.kitware.com: VTK memoryview buffer vtkDataArray \
# resize while exported dangling numpy view Initialize segfault BufferError"""
# picture = """
# view = memoryview(array)          buf ——> | 8 MiB |
# array.Initialize()                buf ——> not mapped
# view[0]                           the process ends"""
#
# [tool.gridbuf-finding.releases]
# date = "2026-11-26"
# package = "vtk"
# python = "3.12"
# listed = 14
# shown = ["9.3.0", "9.7.2"]
#
# [tool.gridbuf-finding.replays.affected]
# actual = "the object moved its memory"
# expected = "Initialize() refused, or the address kept"
# outcome = "FAIL"
#
# [tool.gridbuf-finding.replays.passes]
# outcome = "PASS"
#
# [tool.gridbuf-finding.runs."vtk-9.7.2"]
# date = "2026-11-25"
# exit = 1
# told = "defect: the process died of signal 11"
# ///
"""Data arrays of VTK free their memory while a buffer is exported"""

import subprocess
import sys
import warnings

from vtkmodules.vtkCommonCore import vtkDoubleArray

if len(sys.argv) < 2:
    died = subprocess.run([sys.executable, __file__, "child"]).returncode
    sys.exit(f"defect: the process died of signal {-died}" if died < 0 else 2 * bool(died))

warnings.simplefilter("ignore")
array = vtkDoubleArray()
array.SetNumberOfValues(2**20)
view = memoryview(array)
try:
    array.Initialize()
except BufferError as error:
    print("refused:", error)
print(view[0])
