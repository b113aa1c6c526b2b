"""image_from_array gives an array and its transpose the same image."""

import sys

import itk
import numpy as np

source = np.arange(1, 7, dtype="f4").reshape(3, 2).T
try:
    copy = itk.array_from_image(itk.image_from_array(source))
    if copy.shape != source.shape:
        sys.exit(f"defect: shape {source.shape} became {copy.shape}")
except (KeyError, TypeError, ValueError, RuntimeError) as error:
    print("refused:", error)
    sys.exit(0)
sys.exit(f"defect: {source.tolist()} became {copy.tolist()}" if (copy != source).any() else 0)
