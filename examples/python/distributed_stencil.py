"""From `zeros` to a stencil on four ranks. Without mpiexec it runs on one rank.

mpiexec -n 4 python -m mpi4py distributed_stencil.py
"""

# [zeros]
import numpy as np

import gridbuf
import gridbuf.storage

# 64 x 48 columns of 8 levels, and a halo of one point around the columns.
shape, halo = (64, 48, 8), (1, 1, 0)
phi = gridbuf.storage.zeros((66, 50, 8), backend="gt:cpu_ifirst", halo=halo)
out = gridbuf.storage.zeros_like(phi)

x, y, z = (np.arange(extent) / extent for extent in shape)
waves = gridbuf.storage.storage(np.sin(2 * np.pi * x), dims="I")
waves = waves * gridbuf.storage.storage(np.cos(4 * np.pi * y), dims="J")
start = waves + gridbuf.storage.storage(z, dims="K")  # (I, J) and (K): over I, J, K
phi.domain_view[...] = start
# [/zeros]


# [stencil]
from gridbuf import Field  # noqa: E402


def shifted(field, origin, domain, i=0, j=0):
    """The domain, shifted by `i` and `j` points."""
    return field[
        tuple(slice(o + d, o + d + n) for o, d, n in zip(origin, (i, j, 0), domain, strict=True))
    ]


@gridbuf.stencil(writes="out", extents={"phi": (1, 1, 0)})
def diffuse(
    phi: Field[np.float64], out: Field[np.float64], rate: float, *, origin: dict, domain: tuple
):
    at = origin["phi"], domain
    here = shifted(phi, *at)
    along_i = shifted(phi, *at, i=-1) + shifted(phi, *at, i=1)
    along_j = shifted(phi, *at, j=-1) + shifted(phi, *at, j=1)
    shifted(out, origin["out"], domain)[...] = here + rate * (along_i + along_j - 4.0 * here)


diffuse(phi, out, 0.1)  # computes inside the halo
# [/stencil]

# [refused]
try:
    diffuse(phi, out, 0.1, origin=(1, 1, 0), domain=(66, 48, 8))
except ValueError as error:
    assert str(error).startswith("field 'phi', dimension I: ")
# [/refused]


# [serial]
for _ in range(10):
    gridbuf.storage.fill_halo(phi, "periodic")
    diffuse(phi, out, 0.1)
    phi, out = out, phi
expected = phi.domain_view.to_numpy().copy()
# [/serial]

# [decompose]
import gridbuf.mpi  # noqa: E402

grid = gridbuf.mpi.Decomposition({"I": 64, "J": 48}, periodic=("I", "J"))
phi = grid.zeros(shape, backend="gt:cpu_ifirst", halo=halo)  # with four ranks (34, 26, 8)
out = grid.zeros(shape, backend="gt:cpu_ifirst", halo=halo)
phi.domain_view[...] = start[grid.slices(phi.dims)]  # this rank's part
# [/decompose]

# [forgotten]
try:
    diffuse(phi, out, 0.1)
except gridbuf.StaleHaloError as error:
    if grid.rank == 0:
        print(error)
# [/forgotten]

# [exchange]
exchange = gridbuf.mpi.HaloExchange(grid, phi)

for _ in range(10):
    exchange(phi)  # instead of fill_halo
    diffuse(phi, out, 0.1)
    phi, out = out, phi

whole = grid.gather(phi)  # on rank 0, None on the others
assert grid.rank != 0 or np.array_equal(whole, expected)  # bit for bit
# [/exchange]

# [on_demand]
phi.domain_view[...] = start[grid.slices(phi.dims)]
for _ in range(10):
    diffuse(phi, out, 0.1, halo_check="exchange")
    phi, out = out, phi

whole = grid.gather(phi)
assert grid.rank != 0 or np.array_equal(whole, expected)
# [/on_demand]

# [overlap]
ni, nj, nk = phi.domain_view.shape
inner = {"origin": (2, 2, 0), "domain": (ni - 2, nj - 2, nk)}
edges = [
    {"origin": (1, 1, 0), "domain": (1, nj, nk)},
    {"origin": (ni, 1, 0), "domain": (1, nj, nk)},
    {"origin": (2, 1, 0), "domain": (ni - 2, 1, nk)},
    {"origin": (2, nj, 0), "domain": (ni - 2, 1, nk)},
]

phi.domain_view[...] = start[grid.slices(phi.dims)]
for _ in range(10):
    pending = exchange.start(phi)
    diffuse(phi, out, 0.1, **inner)  # needs no halo: runs while the messages travel
    pending.wait()
    for edge in edges:
        diffuse(phi, out, 0.1, **edge)
    phi, out = out, phi

whole = grid.gather(phi)
assert grid.rank != 0 or np.array_equal(whole, expected)
# [/overlap]

# [device]
import gridbuf.testing  # noqa: E402

gridbuf.testing.emulated_device()  # leave this line out where there is a GPU

on_device = gridbuf.stencil(diffuse.__wrapped__, backend="gt:gpu", writes="out")
phi = grid.zeros(shape, backend="gt:gpu", halo=halo)
out = grid.zeros(shape, backend="gt:gpu", halo=halo)
phi.domain_view[...] = start[grid.slices(phi.dims)]
exchange = gridbuf.mpi.HaloExchange(grid, phi)

for _ in range(10):
    exchange(phi)
    on_device(phi, out, 0.1)
    phi, out = out, phi

whole = grid.gather(phi)
assert grid.rank != 0 or np.array_equal(whole, expected)
# [/device]

if grid.rank == 0:
    print(f"{grid.size} ranks computed what one did, by {exchange.engine}")
