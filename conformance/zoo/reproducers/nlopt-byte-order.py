"""nlopt reads big-endian bounds as little-endian ones."""

import sys

import nlopt
import numpy as np

source = np.arange(1, 5, dtype=">f8")
try:
    problem = nlopt.opt(nlopt.LN_COBYLA, 4)
    problem.set_lower_bounds(source)
    copy = problem.get_lower_bounds()
except (TypeError, ValueError, RuntimeError) as error:
    print("refused:", error)
    sys.exit(0)
sys.exit(f"defect: {source.tolist()} became {copy.tolist()}" if (copy != source).any() else 0)
