"""The first program of docs/get-started.md."""

# [field]
import gridbuf

# 128 x 128 columns of 80 levels with a halo of 3. The first inner point starts a cache line.
field = gridbuf.zeros((134, 134, 80), backend="gt:cpu_ifirst", aligned_index=(3, 3, 0))
print(type(field), field.strides)
assert field[3, 3, 0:1].ctypes.data % 64 == 0
# [/field]
