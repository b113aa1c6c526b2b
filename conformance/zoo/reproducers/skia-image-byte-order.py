"""Image.fromarray reads big-endian pixels as little-endian ones."""

import sys

import numpy as np
import skia

source = np.arange(1, 5, dtype=">f4").reshape(1, 1, 4)
try:
    image = skia.Image.fromarray(source, skia.kRGBA_F32_ColorType)
    copy = image.toarray(colorType=skia.kRGBA_F32_ColorType)
except (TypeError, ValueError, RuntimeError) as error:
    print("refused:", error)
    sys.exit(0)
sys.exit(f"defect: {source.tolist()} became {copy.tolist()}" if (copy != source).any() else 0)
