"""imagecodecs.tiff_encode writes big-endian pixels as little-endian ones."""

import sys

import imagecodecs
import numpy as np

source = np.arange(4, dtype=">u2").reshape(2, 2)
try:
    copy = imagecodecs.tiff_decode(imagecodecs.tiff_encode(source))
except (TypeError, ValueError) as error:
    print("refused:", error)
    sys.exit(0)
sys.exit(f"defect: {source.tolist()} became {copy.tolist()}" if (copy != source).any() else 0)
