"""Diffusion of a field over several processes; the result is the same on any number of ranks, bit for bit.

    mpiexec -n 4 python -m mpi4py distributed_diffusion.py

(`python distributed_diffusion.py` is a program of one rank. `-m mpi4py` ends all ranks if one raises.)
"""

# mpiexec -n 4 python distributed_diffusion.py

# [decomposition]
import numpy as np

import gridbuf.mpi
import gridbuf.storage

SHAPE = (66, 50, 8)  # of the whole field, without halos

# I and J are cut into one box per rank; both are periodic. K stays whole.
grid = gridbuf.mpi.Decomposition({"I": SHAPE[0], "J": SHAPE[1]}, periodic="IJ")
halo = ((1, 1), (1, 1), (0, 0))
shape = grid.local_shape(SHAPE, halo=halo)

u = gridbuf.storage.zeros(shape, backend="gt:cpu_ifirst", halo=halo)
v = gridbuf.storage.zeros_like(u)
exchange = gridbuf.mpi.HaloExchange(grid, u)  # for u and all storages like it
# [/decomposition]


# [step]
def diffuse(u, v, rate):
    """One step on one rank: reads u with its halo, writes the inner points of v."""
    inner = u[1:-1, 1:-1]
    laplacian = (u[2:, 1:-1] + u[:-2, 1:-1]) + (u[1:-1, 2:] + u[1:-1, :-2]) - 4.0 * inner
    v[1:-1, 1:-1] = inner + rate * laplacian


def initial(shape: tuple[int, ...]) -> np.ndarray:
    """A field without symmetry: every point differs."""
    return np.random.default_rng(42).random(shape)


# [/step]

# [run]
u.domain_view[...] = initial(SHAPE)[grid.slices("IJK")]  # the part of this rank
for _ in range(20):
    exchange(u)
    diffuse(u, v, 0.1)
    u, v = v, u

result = grid.gather(u)  # on rank 0, None elsewhere
# [/run]


def serial(values: np.ndarray, steps: int) -> np.ndarray:
    """The same in one process, with a halo filled by NumPy."""
    for _ in range(steps):
        wide = np.pad(values, ((1, 1), (1, 1), (0, 0)), mode="wrap")
        out = np.zeros_like(wide)
        diffuse(wide, out, 0.1)
        values = out[1:-1, 1:-1]
    return values


# [check]
if grid.rank == 0:
    assert result.tobytes() == np.ascontiguousarray(serial(initial(SHAPE), 20)).tobytes()
    print(
        f"{grid.size} ranks as {dict(grid.ranks)}, {exchange.engine}: equal to one rank, bit for bit"
    )
# [/check]

# [overlap]
# Compute the points that need no halo while the messages travel.
pending = exchange.start(u)
inner = (slice(2, -2), slice(2, -2))
v[inner] = u[inner] + 0.1 * (
    (u[3:-1, 2:-2] + u[1:-3, 2:-2]) + (u[2:-2, 3:-1] + u[2:-2, 1:-3]) - 4.0 * u[inner]
)
pending.wait()  # the halo is filled; compute the remaining ring of points
# [/overlap]
expected = gridbuf.storage.zeros_like(u)
diffuse(u, expected, 0.1)
assert (v[inner] == expected[inner]).to_numpy().all()
