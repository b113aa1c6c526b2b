"""The messages and bytes of exchanges that know how deep halos are valid.

    mpiexec -n 4 python -m mpi4py deep_halo.py

Four loops over fields whose halos have four points. Each loop runs with exchanges of the missing points, and with exchanges of whole
halos. Both results are those of one process, bit for bit. (`python deep_halo.py` is a program of one rank, which sends nothing.)
"""

import math

# [fields]
import numpy as np

import gridbuf
import gridbuf.mpi

SHAPE, DEPTH, STEPS = (48, 48, 8), 4, 12
HALO = (DEPTH, DEPTH, 0)  # along I and J
grid = gridbuf.mpi.Decomposition({"I": SHAPE[0], "J": SHAPE[1]}, periodic="IJ")
# [/fields]


# [stencil]
def mean(radius):
    """A stencil: the mean of `w` and of the four points of `u` that are `radius` points away."""

    @gridbuf.stencil(writes="out", extents={"u": (radius, radius, 0)})
    def compute(
        u: gridbuf.Field[np.float64],
        w: gridbuf.Field[np.float64],
        out: gridbuf.Field[np.float64],
        *,
        origin: dict,
        domain: tuple,
    ):
        def at(array, name, i=0, j=0):
            first = np.add(origin[name], (i, j, 0))
            return array[tuple(map(slice, first, first + domain))]

        along_i = at(u, "u", i=-radius) + at(u, "u", i=radius)
        along_j = at(u, "u", j=-radius) + at(u, "u", j=radius)
        at(out, "out")[...] = 0.2 * (at(w, "w") + (along_i + along_j))

    return compute


narrow, wide = mean(1), mean(3)
# [/stencil]


def each_step(exchange, u):
    """Each step needs one point of the halo, and an exchange before it."""
    new = grid.zeros(SHAPE, halo=HALO)
    for _ in range(STEPS):
        exchange(u, depth=1)
        narrow(u, u, new)
        u, new = new, u
    return [u]


# [deep]
def around(points):
    """Where a stencil computes the domain and so many points outside of it."""
    ni, nj, nk = (grid.local_extents["I"], grid.local_extents["J"], SHAPE[2])
    first = DEPTH - points
    return {"origin": (first, first, 0), "domain": (ni + 2 * points, nj + 2 * points, nk)}


def deep_halo(exchange, u):
    """An exchange of four points serves four steps, on domains that shrink."""
    new = grid.zeros(SHAPE, halo=HALO)
    for _ in range(STEPS):
        if u.valid_halo[0] == (0, 0):
            exchange(u)
        outside = u.valid_halo[0][0] - 1  # the stencil reads one point further than it computes
        narrow(u, u, new, **around(outside))  # leaves `outside` points of `new` valid
        u, new = new, u
    return [u]


# [/deep]


def all_fields(exchange, u, v):
    """Two coupled fields: whole halos of both before each stencil, as many models do."""
    new = grid.zeros(SHAPE, halo=HALO)
    for _ in range(STEPS):
        exchange(u, v)
        narrow(u, v, new)
        u, new = new, u
        exchange(u, v)
        wide(v, u, new)
        v, new = new, v
    return [u, v]


def what_is_read(exchange, u, v):
    """The same with exchanges of what the next stencil reads."""
    new = grid.zeros(SHAPE, halo=HALO)
    for _ in range(STEPS):
        exchange(u, depth=1)
        narrow(u, v, new)
        u, new = new, u
        exchange(v, depth=3)
        wide(v, u, new)
        v, new = new, v
    return [u, v]


def start(seed):
    """A field without symmetry: every point differs."""
    return np.random.default_rng(seed).random(SHAPE)


def part(seed):
    """This rank's part of it."""
    made = grid.zeros(SHAPE, halo=HALO)
    made.domain_view[...] = start(seed)[grid.slices("IJK")]
    return made


# For one field and for two. GHEX would send all points up to the depth, or none.
exchanges = [gridbuf.mpi.HaloExchange(grid, *map(part, range(n)), engine="mpi4py") for n in (1, 2)]


def run(loop, count, *, whole):
    """The fields after the loop, and the messages and bytes that this rank has sent."""

    def exchange(*fields, depth=None):
        if whole:  # as if gridbuf did not know what is valid
            for field in fields:
                field.mark_halo_stale()
        exchanges[len(fields) - 1](*fields, depth=None if whole else depth)

    before = np.sum([one.traffic for one in exchanges], axis=0)
    fields = loop(exchange, *map(part, range(count)))
    return fields, np.sum([one.traffic for one in exchanges], axis=0) - before


def on_one_rank(count):
    """The fields after the loop, computed by NumPy."""

    def mean(u, w, radius):
        along_i, along_j = (np.roll(u, radius, a) + np.roll(u, -radius, a) for a in (0, 1))
        return 0.2 * (w + (along_i + along_j))

    u, v = start(0), start(1)
    for _ in range(STEPS):
        u = mean(u, v if count == 2 else u, 1)
        v = mean(v, u, 3)
    return [u, v][:count]


if grid.rank == 0:
    sizes = " x ".join(map(str, SHAPE))
    cut = " x ".join(map(str, grid.ranks.values()))
    print(f"{sizes} points of float64 on {cut} ranks. Each rank sends in {STEPS} steps:\n")
    print(f"{'':27}{'whole halos':>20}{'missing points':>20}")
    print(f"{'':27}" + 2 * f"{'messages':>12}{'KiB':>8}")

for loop, count, name in (
    (each_step, 1, "exchange before each step"),
    (deep_halo, 1, "one for four steps"),
    (all_fields, 2, "two fields, all before each"),
    (what_is_read, 2, "two fields, what is read"),
):
    counts = []
    for whole in (True, False):
        fields, sent = run(loop, count, whole=whole)
        for expected, field in zip(on_one_rank(count), fields, strict=True):
            result = grid.gather(field)
            assert grid.rank or result.tobytes() == expected.tobytes()
        assert len(set(map(tuple, grid.comm.allgather(sent)))) == 1  # the same on all ranks
        counts.append(f"{sent[0]:12}{sent[1] / 1024:8g}")
    if grid.rank == 0:
        print(f"{name:27}{''.join(counts)}")

if grid.rank == 0:
    computed = [math.prod(around(points)["domain"]) for points in range(DEPTH)]
    share = sum(computed) / DEPTH / computed[0]
    print(f"\nThe loop with one exchange for four steps computes {share:.2f} x the points.")
