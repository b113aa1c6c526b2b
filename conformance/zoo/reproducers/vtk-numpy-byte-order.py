"""numpy_to_vtk of VTK reads big-endian arrays as little-endian ones."""

import sys

import numpy as np
from vtkmodules.util import numpy_support

source = np.arange(4, dtype=">f4")
try:
    copy = numpy_support.vtk_to_numpy(numpy_support.numpy_to_vtk(source, deep=True))
except (TypeError, ValueError) as error:
    print("refused:", error)
    sys.exit(0)
sys.exit(f"defect: {source.tolist()} became {copy.tolist()}" if (copy != source).any() else 0)
