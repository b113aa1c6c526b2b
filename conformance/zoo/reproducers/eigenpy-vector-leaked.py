"""eigenpy leaks a reference to each array that is appended to a StdVec_VectorXd."""

import sys

import eigenpy
import numpy as np

source = np.arange(4.0)
before = sys.getrefcount(source)
for _ in range(10):
    vectors = eigenpy.StdVec_VectorXd()
    vectors.append(source)
    del vectors
leaked = sys.getrefcount(source) - before
sys.exit(f"defect: {leaked} references are left of 10 containers" if leaked >= 10 else 0)
