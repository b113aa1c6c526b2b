"""addEntries writes big-endian values as little-endian ones."""

import sys

import numpy as np
import pyBigWig

source = np.arange(1, 5, dtype=">f4")
try:
    with pyBigWig.open("x.bw", "w") as file:
        file.addHeader([("chr", 8)])
        file.addEntries("chr", 0, values=source, span=1, step=1)
    with pyBigWig.open("x.bw") as file:
        copy = np.array(file.values("chr", 0, 4))
except (TypeError, ValueError, RuntimeError) as error:
    print("refused:", error)
    sys.exit(0)
sys.exit(f"defect: {source.tolist()} became {copy.tolist()}" if (copy != source).any() else 0)
