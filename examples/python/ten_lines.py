"""The front page of the documentation: a storage with names and a halo, arithmetic by names, and another library's view of it."""

# [lines]
import numpy as np

import gridbuf

field = gridbuf.storage.zeros((20, 20, 8), backend="gt:cpu_kfirst", halo=(2, 2, 0))
profile = gridbuf.storage.storage(np.linspace(0.0, 1.0, 8), dims="K")
field.domain_view[...] = profile + 1.0  # (K) over (I, J, K), inside the halo
print(field.dims, field.halo, field.strides)
print(np.round(field[2, 2].to_numpy(), 2))  # one column of the domain
tensor = np.from_dlpack(field)  # the same memory; torch.from_dlpack gives PyTorch's tensor
print(tensor.shape, tensor[0, 0].max(), tensor[2, 2].max())
# [/lines]
