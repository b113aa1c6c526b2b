# /// script
# requires-python = "==3.12.*"
# dependencies = ["vtk==9.7.2", "numpy==2.5.5"]
#
# [tool.gridbuf-finding]
# library = "VTK"
# side = "producer"
# target = "vtk.readonly"
# rule = "PB-13"
# plan = '{"dtype":"uint8","readonly":true}'
# passes = "numpy-2.5.5"
# passes_target = "numpy"
# severity = "values"
# expected = """\
# A VTK array over read-only memory refuses a writable buffer, or numpy_to_vtk refuses the array."""
# impact = "A write to the memoryview changes read-only memory; here that of a bytes object."
# fix = """\
# In numpy_to_vtk, copy an array that is not writable, or raise an error. VTK's arrays have no flag \
# for read-only memory."""
# status = "new"
# searched = """\
# 2026-11-26, threads on GitHub, not gitlab.kitware.com: numpy_to_vtk read-only numpy array \
# writable memoryview shares memory VTK buffer protocol"""
#
# [tool.gridbuf-finding.replays.affected]
# actual = "the buffer protocol says writable"
# expected = "read-only, as the memory is mapped"
# outcome = "FAIL"
#
# [tool.gridbuf-finding.replays.passes]
# note = "every request for writable memory is refused"
# outcome = "PASS"
#
# [tool.gridbuf-finding.runs."vtk-9.7.2"]
# date = "2026-11-26"
# exit = 1
# told = "defect: written: b'abcdefgh' became b'\\x00bcdefgh'"
# ///
"""VTK's numpy_to_vtk takes a read-only array, and the VTK array exports its memory as writable"""

import sys

import numpy as np
from vtkmodules.util.numpy_support import numpy_to_vtk

text = b"abcdefgh"
before = str(text)
try:
    view = memoryview(numpy_to_vtk(np.frombuffer(text, np.uint8)))
    view[0] = 0
except (BufferError, TypeError, ValueError) as error:
    print("refused:", error)
    sys.exit(0)
after = str(text)
sys.exit(f"defect: written: {before} became {after}" if before != after else 0)
