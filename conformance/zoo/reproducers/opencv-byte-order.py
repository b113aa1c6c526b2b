"""cv2 reads big-endian arrays as little-endian ones."""

import sys

import cv2
import numpy as np

source = np.arange(4, dtype=">f4").reshape(2, 2)
try:
    copy = cv2.copyTo(source, None)
except (TypeError, cv2.error) as error:
    print("refused:", error)
    sys.exit(0)
sys.exit(f"defect: {source.tolist()} became {copy.tolist()}" if (copy != source).any() else 0)
