"""File writes the memory of a channel without regard to its strides."""

import sys

import numpy as np
import OpenEXR

source = np.arange(1, 7, dtype="f4").reshape(3, 2).T
try:
    header = {"compression": OpenEXR.ZIP_COMPRESSION, "type": OpenEXR.scanlineimage}
    OpenEXR.File(header, {"Y": source}).write("x.exr")
    copy = OpenEXR.File("x.exr", separate_channels=True).channels()["Y"].pixels
except (TypeError, ValueError, RuntimeError) as error:
    print("refused:", error)
    sys.exit(0)
sys.exit(f"defect: {source.tolist()} became {copy.tolist()}" if (copy != source).any() else 0)
