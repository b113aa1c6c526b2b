"""A periodic field with its halo. docs/gallery.md shows the values."""

# [data]
import numpy as np

import gridbuf

field = gridbuf.storage.zeros((10, 8), dims="IJ", backend="gt:cpu_ifirst", halo=(2, 2))
field.domain_view[...] = np.arange(24.0).reshape(4, 6).T  # the domain: 6 x 4 points
field[...] = np.pad(field.domain_view.to_numpy(), 2, mode="wrap")  # the halo: opposite edges

slope = gridbuf.storage.zeros_like(field)
east, west = field[3:-1, 2:-2], field[1:-3, 2:-2]
slope.domain_view[...] = (east - west) / 2  # no special case at the edges

values = field.to_numpy()
assert (values[0:2] == values[6:8]).all()  # west of the domain are its last two columns
print(values.T.astype(int))
# [/data]
