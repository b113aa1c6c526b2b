"""One field in three layouts. docs/gallery.md shows the places of the elements."""

# [data]
import numpy as np

import gridbuf

SHAPE = (6, 4)  # I and J
fields = {
    "C": gridbuf.zeros(SHAPE, backend="C"),
    "F": gridbuf.zeros(SHAPE, backend="F"),
    "gt:cpu_ifirst": gridbuf.zeros(SHAPE, backend="gt:cpu_ifirst"),
}

elements = {}  # for each layout: which element is at which place, counted in elements
for name, field in fields.items():
    addresses = {(i, j): field[i:, j:].ctypes.data for i, j in np.ndindex(SHAPE)}
    elements[name] = {(a - field.ctypes.data) // field.itemsize: e for e, a in addresses.items()}
    print(name, field.strides, "the second element is", elements[name][1])
# [/data]
