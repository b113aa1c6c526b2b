"""paddle.from_dlpack forgets the deleters of all but the last of several tensors over the same memory."""

import gc
import sys

import numpy as np
import paddle

array = np.zeros(3)
before = sys.getrefcount(array)
tensors = [paddle.from_dlpack(array) for _ in range(4)]
del tensors
gc.collect()
left = sys.getrefcount(array) - before
sys.exit(f"defect: the tensors are gone, and {left} of 4 still hold the array" if left else 0)
