"""A field for a stencil: laid out for a GT4Py backend, aligned where the computation starts, passed on without a copy."""

# [field]
import numpy as np

import gridbuf

# 128 x 128 columns of 80 levels and a halo of 3; ranks, padding and alignment as `gt:cpu_ifirst` wants them.
temperature = gridbuf.zeros((134, 134, 80), backend="gt:cpu_ifirst", aligned_index=(3, 3, 0))

assert isinstance(temperature, np.ndarray)
assert temperature[3, 3, 0:1].ctypes.data % 64 == 0  # the first inner point is on a cache line,
assert temperature[3, 77, 12:13].ctypes.data % 64 == 0  # and so is every other point with I = 3
# [/field]

# [buffer]
buffer = gridbuf.allocate(
    (20, 10, 80), layout=(2, 0, 1), alignment_size=64, aligned_index=(3, 3, 0)
)
print(buffer)  # shape, dims, layout, padding and alignment at a glance
print(buffer.plan.draw())  # where its elements lie

assert np.shares_memory(np.from_dlpack(buffer), np.asarray(buffer))  # every interface, one memory
# [/buffer]
