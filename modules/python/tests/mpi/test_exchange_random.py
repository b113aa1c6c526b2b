"""Random decompositions, fields and halos, held against the whole field: whatever fits together works."""

from __future__ import annotations

import itertools

import gridbuf.mpi
import numpy as np
from on_ranks import on_ranks
from serial import part_of, whole_field, with_halos

ENGINES = ("mpi4py", "shared", "ghex")
"""Shared is that of mpi4py, with messages in shared memory."""
ROUNDS = 60
RANKS = 4


def random_parts(random, count: int) -> tuple[int, ...]:
    return tuple(int(n) for n in random.integers(1, 6, size=count))


def random_grid(random, *, shared: bool) -> gridbuf.mpi.Decomposition:
    """One to three dimensions in any order, cut evenly or not, periodic or not."""
    dims = [str(d) for d in random.permutation(["I", "J", "K"])[: random.integers(1, 4)]]
    cuts = [c for c in itertools.product((1, 2, 4), repeat=len(dims)) if np.prod(c) == RANKS]
    counts = cuts[random.integers(len(cuts))]
    sizes = {d: random_parts(random, n) for d, n in zip(dims, counts, strict=True)}
    return gridbuf.mpi.Decomposition(
        {d: sum(parts) for d, parts in sizes.items()},
        sizes=sizes,
        periodic=[d for d in dims if random.random() < 0.5],
        shared=shared,
    )


def random_field(random, grid, *, all_cut: bool, dtypes):
    """dims, shape, halo, dtype, layout of a field that fits the grid."""
    wanted = [d for d in grid.dims if all_cut or random.random() < 0.8]
    others = [d for d in ("I", "J", "K", "0") if d not in grid.dims]
    dims = [*wanted, *[d for d in others if random.random() < 0.5]] or ["0"]
    dims = [str(d) for d in random.permutation(dims)]
    shape, halo = [], []
    for dim in dims:
        extent = grid.extents.get(dim) or int(random.integers(1, 5))
        free = dim not in grid.extents or (grid.ranks[dim] == 1 and not grid.periodic[dim])
        most = min(2, extent // 2) if free else min(3, *grid.sizes[dim], 3)
        shape.append(extent)
        halo.append(tuple(int(n) for n in random.integers(0, most + 1, size=2)))
    if any(
        d not in grid.extents and sum(h) >= n for d, h, n in zip(dims, halo, shape, strict=True)
    ):
        halo = [h if d in grid.extents else (0, 0) for d, h in zip(dims, halo, strict=True)]
    layout = tuple(int(n) for n in random.permutation(len(dims)))
    return tuple(dims), tuple(shape), tuple(halo), random.choice(dtypes), layout


def exchange_some(engine, random, dtypes) -> bool:
    """One random exchange; False if GHEX cannot take its fields and says so."""
    grid = random_grid(random, shared=engine == "shared")
    wanted = "mpi4py" if engine == "shared" else engine
    kinds = [
        random_field(random, grid, all_cut=engine == "ghex", dtypes=dtypes)
        for _ in range(random.integers(1, 4))
    ]
    wholes, fields = [], []
    for seed, (dims, shape, halo, dtype, layout) in enumerate(kinds):
        inner = tuple(
            n if d in grid.extents else n - sum(h)
            for d, n, h in zip(dims, shape, halo, strict=True)
        )
        wholes.append(whole_field(inner, dtype, seed))
        alignment = int(random.choice((1, 32)))
        fields.append(
            part_of(grid, wholes[-1], dims, halo, layout=layout, alignment_size=alignment)
        )
    corners = engine == "ghex" or bool(random.random() < 0.7)
    cuts = [
        [sum(h) for d, h in zip(dims, halo, strict=True) if d in grid.extents]
        for dims, _, halo, _, _ in kinds
    ]
    has_nothing_to_fill = any(cut and not any(cut) for cut in cuts)
    try:
        exchange = gridbuf.mpi.HaloExchange(grid, *fields, engine=wanted, corners=corners)
    except (ValueError, gridbuf.mpi.HaloExchangeError) as error:
        words = ("layout map (2,", "contiguous")
        is_of_ghex = engine == "ghex" and any(word in str(error) for word in words)
        assert is_of_ghex or (has_nothing_to_fill and "at least 1 point" in str(error)), error
        return False
    assert not has_nothing_to_fill
    for made in exchange._engines.values():
        if wanted == "mpi4py":  # no message of shared memory is one of MPI by mistake
            assert len(made.engine._read[0]) == len(made.engine._sends) * (engine == "shared")
    for _ in range(2):
        exchange(*fields)
    for whole, field, (dims, _, halo, _, _) in zip(wholes, fields, kinds, strict=True):
        np.testing.assert_array_equal(
            field.to_numpy(),
            with_halos(grid, whole, dims, halo, corners=corners),
            err_msg=f"{grid} {dims} {halo} {field.layout}",
        )
    exchange.close()
    return True


@on_ranks(RANKS, engine=ENGINES)
def test_random_fields_on_random_decompositions(engine) -> None:
    random = np.random.default_rng(8)  # The same on every rank.
    dtypes = ("float64", "float32", "int32", "bool")
    if engine != "ghex":
        dtypes = (*dtypes, "int16", "complex64", "i1", "S3")
    done = sum(exchange_some(engine, random, dtypes) for _ in range(ROUNDS))
    assert done > ROUNDS / 2
