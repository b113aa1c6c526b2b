"""A stencil in plain NumPy. Each call checks the fields and passes origin and domain."""

# [stencil]
import numpy as np

import gridbuf
from gridbuf import IJK, Field


@gridbuf.stencil(writes="out")
def add_east(phi: Field[np.float64, IJK], out: Field[np.float64, IJK], *, origin, domain):
    """`out` is the sum of `phi` and its eastern neighbour."""
    (i, j, k), (ni, nj, nk) = origin["phi"], domain
    here, east = (phi[i + d : i + d + ni, j : j + nj, k : k + nk] for d in (0, 1))
    i, j, k = origin["out"]
    out[i : i + ni, j : j + nj, k : k + nk] = here + east


phi = gridbuf.storage.ones((66, 66, 80), halo=(1, 1, 0))
levels = gridbuf.storage.zeros((80, 66, 66), dims="KJI", halo=(0, 1, 1))  # the order of a file
add_east(phi, levels)  # dimensions and halo come from the fields
assert (levels.domain_view.to_numpy() == 2.0).all() and levels[0, 0, 0] == 0.0
try:
    add_east(phi, levels.to_numpy().astype("float32"))
except TypeError as error:
    print(error)  # names the field, its type and the expected type
# [/stencil]
