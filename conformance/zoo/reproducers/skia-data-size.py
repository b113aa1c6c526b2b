"""skia.Data has another size than the buffer that it is made of."""

import sys

import numpy as np
import skia

source = np.array(1.0)
try:
    size = skia.Data(source).size()
except (TypeError, ValueError) as error:
    print("refused:", error)
    sys.exit(0)
sys.exit(
    f"defect: a buffer of {source.nbytes} bytes became {size} bytes" if size != source.nbytes else 0
)
