"""gridbuf's memory for the arrays that NumPy makes."""

# [block]
import numpy as np

from gridbuf import memory

a, b = np.ones((2, 128, 256, 256))  # NumPy's memory

with memory.numpy_allocator():
    c = (a * 2 + b * 3 - a) / b  # the result and its temporary arrays: gridbuf's memory

assert c.ctypes.data % 64 == 0 and (c == 4.0).all()
# [/block]


# [function]
@memory.numpy_allocator(alignment=128)
def step(field):
    return field + 0.25 * (np.roll(field, 1, axis=0) - field)


c = step(c)
assert memory.alloc_info(c)["alignment_size"] == 128
# [/function]

# [statistics]
found = memory.statistics()
print(f"{found['live_blocks']} large arrays in use, {found['cached_blocks'] > 0 = }")

memory.configure(cache_limit_bytes=1 << 30)  # keep at most 1 GiB
memory.trim()  # give everything that is kept back now
assert memory.statistics()["cached_bytes"] == 0
# [/statistics]
