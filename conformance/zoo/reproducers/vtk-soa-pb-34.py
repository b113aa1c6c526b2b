"""vtkSOADataArrayTemplate exports a writable copy, another one for each view."""

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
