# /// script
# requires-python = "==3.12.*"
# dependencies = ["vtk==9.7.2", "numpy==2.5.5"]
#
# [tool.gridbuf-finding]
# library = "VTK"
# side = "producer"
# target = "vtk.soa"
# rule = "PB-34"
# plan = '{"shape":[1,2]}'
# passes = "numpy-2.5.5"
# passes_target = "numpy"
# severity = "values"
# expected = "A write to the memoryview reaches the array, or the memoryview is read-only."
# impact = "What is written to the memoryview is lost, and no error says so."
# fix = """\
# In the getbuffer function of vtkSOADataArrayTemplate, refuse PyBUF_WRITABLE, and say readonly \
# for the interleaved copy."""
# status = "new"
# searched = """\
# 2026-11-23, threads on GitHub, not gitlab.kitware.com: VTK python buffer protocol vtkDataArray \
# getbuffer F_CONTIGUOUS strides vtkSOADataArrayTemplate copy"""
#
# [tool.gridbuf-finding.releases]
# date = "2026-11-24"
# gone = ["9.3.0", "9.5.1", "9.6.1", "9.6.2"]
# package = "vtk"
# python = "3.12"
# listed = 14
# shown = ["9.7.0", "9.7.2"]
#
# [tool.gridbuf-finding.replays.affected]
# actual = "two views open at a time have two addresses"
# expected = "one address for all open views"
# outcome = "FAIL"
#
# [tool.gridbuf-finding.replays.passes]
# outcome = "PASS"
#
# [tool.gridbuf-finding.runs."vtk-9.7.2"]
# date = "2026-11-25"
# exit = 1
# told = "defect: 1.0 was written, the array has 7.0"
# ///
"""vtkSOADataArrayTemplate of VTK exports a writable copy, and a new one for each view"""

import sys

import vtk

planes = vtk.vtkSOADataArrayTemplate["float64"]()
planes.SetNumberOfComponents(2)
planes.SetNumberOfTuples(2)
planes.Fill(7.0)
view = memoryview(planes)
if view.readonly:
    sys.exit(0)
view[0, 0] = 1.0
held = planes.GetComponent(0, 0)
sys.exit(f"defect: 1.0 was written, the array has {held}" if held != 1 else 0)
