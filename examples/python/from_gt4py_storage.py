"""A model's allocations with `gt4py.storage`, then with gridbuf, step by step."""

# [before]
import numpy as np
from gt4py import storage as gt_storage

BACKEND, ORIGIN = "gt:cpu_ifirst", (3, 3, 0)
old = gt_storage.zeros((134, 134, 80), np.float64, backend=BACKEND, aligned_index=ORIGIN)
# [/before]

# [switch]
from gridbuf.gt4py import cartesian as gb_storage  # noqa: E402

new = gb_storage.zeros((134, 134, 80), np.float64, backend=BACKEND, aligned_index=ORIGIN)
assert type(new) is type(old) and new.shape == old.shape and new.dtype == old.dtype
# [/switch]

# [differs]
assert old.strides == (8, 1072, 143648)  # rows of 134 elements
assert new.strides == (8, 1088, 145792)  # rows of 136: a whole number of cache lines
assert new[3, 3, 0:1].ctypes.data % 64 == 0  # the element at `aligned_index`
assert not new.flags.f_contiguous and old.flags.f_contiguous  # padding ends contiguity
# [/differs]

# [names]
# K first, as a file delivers it. The layout follows the names, so I is contiguous.
levels = gb_storage.zeros((80, 134, 134), backend=BACKEND, dimensions="KJI")
assert levels.strides == (145792, 1088, 8)
assert gt_storage.zeros((80, 134, 134), backend=BACKEND, dimensions="KJI").strides[0] == 8
# [/names]

# [data]
# A wind vector per point: the sub-array dtype becomes a data dimension, which is outermost.
wind = gb_storage.zeros((134, 134, 80), (np.float64, (3,)), backend=BACKEND)
assert wind.shape == (134, 134, 80, 3) and wind.strides[3] == max(wind.strides)
# [/data]

# [storage]
import gridbuf  # noqa: E402

phi = gridbuf.storage.zeros((134, 134, 80), backend=BACKEND, halo=(3, 3, 0))
assert phi.aligned_index == (3, 3, 0)  # the halo gives the aligned index
assert phi.__gt_origin__ == (3, 3, 0)  # and the origin that GT4Py reads
assert phi.domain_view.shape == (128, 128, 80)
# [/storage]

# [wrap]
wrapped = gridbuf.storage.as_storage(old, halo=(3, 3, 0))  # GT4Py's memory, no copy
wrapped.domain_view[...] = 1.0
assert old[3, 3, 0] == 1.0 and old[0, 0, 0] == 0.0
# [/wrap]
