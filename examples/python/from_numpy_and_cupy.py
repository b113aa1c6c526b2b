"""What NumPy's functions are called in gridbuf, and how arrays go both ways without a copy."""

# [allocate]
import numpy as np

import gridbuf

a = gridbuf.zeros((64, 64, 80))  # as np.zeros: an ndarray in C order
f = gridbuf.zeros((64, 64, 80), backend="F")  # as order="F"
t = gridbuf.zeros((64, 64, 80), layout=(2, 0, 1))  # any order of the dimensions
p = gridbuf.zeros((64, 60), "float32", alignment_size=64)  # padded rows, aligned
assert type(a) is type(t) is np.ndarray
assert t.strides == (8, 64 * 80 * 8, 64 * 8)
assert p.strides == (256, 4) and p.ctypes.data % 64 == 0
# [/allocate]

# [buffer]
buffer = p.base  # the Buffer below the ndarray
assert buffer.alignment_size == 64 and buffer.dims == ("I", "J")
assert buffer.nbytes == 64 * 60 * 4  # the elements
assert buffer.plan.total_bytes == 64 * 64 * 4  # with padding
# [/buffer]

# [exchange]
mine = np.arange(12.0).reshape(3, 4)
buffer = gridbuf.as_buffer(mine, dims="KI")  # no copy
assert np.shares_memory(np.asarray(buffer), mine)
assert np.shares_memory(np.from_dlpack(buffer), mine)
laid_out = gridbuf.from_array(mine, dims="KI", backend="gt:cpu_ifirst")  # a copy in another layout
assert (laid_out == mine).all()
# [/exchange]

# [storage]
field = gridbuf.storage.storage(mine, dims="KI")
column = gridbuf.storage.ones(3, dims="K")
assert (field + column).dims == ("K", "I")  # by names; NumPy needs column[:, np.newaxis]
assert np.sum(field, axis="I").shape == field.mean(axis="I").shape == (3,)  # axes have names, too
try:
    np.place(field, field > 3.0, [0.0])  # not in the table of functions
except TypeError as error:
    print(error)  # names a replacement: numpy.copyto
np.place(field.to_numpy(), field.to_numpy() > 3.0, [0.0])  # all of NumPy, on the same memory
assert field.max() == 3.0
# [/storage]
