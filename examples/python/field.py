"""A field in the layout of a GT4Py backend, aligned where the computation starts."""

# [field]
import numpy as np

import gridbuf

# 128 x 128 columns of 80 levels, halo 3; layout, padding and alignment of the preset `gt:cpu_ifirst`.
temperature = gridbuf.zeros((134, 134, 80), backend="gt:cpu_ifirst", aligned_index=(3, 3, 0))

assert isinstance(temperature, np.ndarray)
assert temperature[3, 3, 0:1].ctypes.data % 64 == 0  # the first inner point starts a cache line,
assert temperature[3, 77, 12:13].ctypes.data % 64 == 0  # and so does every other point with I = 3
# [/field]

# [buffer]
buffer = gridbuf.allocate(
    (20, 10, 80), layout=(2, 0, 1), alignment_size=64, aligned_index=(3, 3, 0)
)
print(buffer)  # shape, dims, layout, padding and alignment at a glance
print(buffer.plan.draw())  # where its elements are

assert np.shares_memory(np.from_dlpack(buffer), np.asarray(buffer))  # one memory
# [/buffer]
