"""A storage on host and device, and arithmetic by names of dimensions. Without a GPU: on the emulated device."""

# [sides]
import numpy as np

import gridbuf

gridbuf.testing.emulated_device()  # leave this line out where there is a GPU

field = gridbuf.storage.zeros((20, 20, 8), backend="gt:gpu", halo=(2, 2, 0))
surface = gridbuf.storage.ones((20, 20), dims="IJ")
profile = gridbuf.storage.storage(np.linspace(0.0, 1.0, 8), dims="K")

field[...] = surface + profile  # (I, J) and (K): over I, J, K
field.domain_view[...] += 1.0  # inside the halo only
assert field.dims == ("I", "J", "K")
assert field[0, 0, 7] == 2.0 and field[2, 2, 7] == 3.0  # read on the host
# [/sides]
