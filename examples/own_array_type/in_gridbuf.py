"""A stencil of gridbuf on the array types of fields.py, on the host and on a device."""

# [stencil]
import numpy as np
from fields import MirroredField, ModelField

import gridbuf
import gridbuf.testing
from gridbuf import Field


def relax(phi: Field[np.float64], out: Field[np.float64], rate: float, *, origin, domain):
    """Moves each point of the domain towards its neighbours along I."""
    (i, j, k), (ni, nj, nk) = origin["phi"], domain
    columns = slice(j, j + nj), slice(k, k + nk)
    here = phi[(slice(i, i + ni), *columns)]
    around = phi[(slice(i - 1, i + ni - 1), *columns)] + phi[(slice(i + 1, i + ni + 1), *columns)]
    out[(slice(i, i + ni), *columns)] = here + rate * (around - 2.0 * here)


halo = ((0, 0), (0, 0), (1, 1))  # in the order of memory: K, J, I
phi, out = ModelField((5, 8, 11), halo=halo), ModelField((5, 8, 11), halo=halo)
phi.values[...] = np.arange(11.0) ** 2

gridbuf.stencil(relax, writes="out")(phi, out, 0.25)
assert np.allclose(out.values[..., 1:-1], np.arange(1.0, 10.0) ** 2 + 0.5)
assert phi.users == out.users == 0  # acquired for the call, then released
# [/stencil]

# [device]
gridbuf.testing.emulated_device()  # leave this line out where there is a GPU

there = MirroredField((5, 8, 11), halo=halo)
result = MirroredField((5, 8, 11), halo=halo)
there.values[...] = phi.values

gridbuf.stencil(relax, backend="gt:gpu", writes="out")(there, result, 0.25)
assert there.newer is None  # `acquire` updated the device
assert result.newer == "device"  # `touch` marked the device
assert np.array_equal(np.asarray(result), out.values)
# [/device]
