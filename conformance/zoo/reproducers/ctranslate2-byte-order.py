"""StorageView.from_array reads big-endian numbers as little-endian ones."""

import sys

import ctranslate2
import numpy as np

try:
    view = ctranslate2.StorageView.from_array(np.arange(3, dtype=">i4"))
except ValueError as error:
    print("refused:", error)
    sys.exit(0)
values = np.array(view).tolist()
sys.exit(f"defect: [0, 1, 2] became {values}" if values != [0, 1, 2] else 0)
