"""The front page of the documentation: a storage with names and a halo, arithmetic by names, and another library's view of it."""

# [lines]
import numpy as np

import gridbuf

field = gridbuf.storage.zeros((20, 20, 8), backend="gt:cpu_kfirst", halo=(2, 2, 0))
profile = gridbuf.storage.storage(np.linspace(0.0, 1.0, 8), dims="K")
field.domain_view[...] = profile + 1.0  # (K) over (I, J, K), inside the halo
print(field.dims, field.shape, "without the halo:", field.domain_view.shape)
print(np.round(field.domain_view.mean(axis=("I", "J")), 2).tolist())
array = np.from_dlpack(field)  # no copy; torch.from_dlpack makes a tensor of it
array[2:-2, 2:-2] *= 10.0
print(field.domain_view.min(), field.domain_view.max())
# [/lines]
