"""Data arrays of VTK free their memory while a buffer is exported."""

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
