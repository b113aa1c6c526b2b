"""numpy() of a reversed array that paddle.from_dlpack imported: other memory is read, or MemoryError."""

import sys

import numpy as np
import paddle

reversed_array = np.array([1.0, 2.0])[::-1]
tensor = paddle.from_dlpack(reversed_array)
try:
    values = tensor.numpy()
except MemoryError:
    sys.exit("defect: MemoryError for two elements")
except BufferError as error:
    sys.exit(print(f"refused: {error}"))
if not np.array_equal(values, reversed_array):
    sys.exit("defect: numpy() has other values than 2.0, 1.0")
