"""When GHEX is the engine, and that it and mpi4py alone give the same, bit for bit; GHEX called directly is the judge of both."""

from __future__ import annotations

import gridbuf
import gridbuf.mpi
import gridbuf.storage
import gridbuf.testing
import numpy as np
import pytest
from on_ranks import has, on_ranks
from serial import part_of, whole_field, with_halos

HALO = ((2, 1), (1, 2), (0, 0))
SHAPE = (12, 11, 4)


@on_ranks(4, engine=("ghex",))
def test_ghex_is_the_engine_where_it_can_be(engine) -> None:
    grid = gridbuf.mpi.Decomposition({"I": 12, "J": 11}, periodic="I")
    field = part_of(grid, whole_field(SHAPE, "f8"), "IJK", HALO)
    assert gridbuf.mpi.HaloExchange(grid, field).engine == engine
    assert gridbuf.mpi.HaloExchange(grid, field, engine="mpi4py").engine == "mpi4py"


@on_ranks(4, engine=("ghex",))
def test_what_ghex_cannot_take_goes_to_mpi4py_and_is_refused_if_it_was_named(engine) -> None:
    grid = gridbuf.mpi.Decomposition({"I": 12, "J": 11}, ranks={"I": 2}, periodic="I")
    whole = whole_field(SHAPE, "f8")
    four = whole_field((*SHAPE, 2), "f8")
    good = part_of(grid, whole, "IJK", HALO)
    cases = [
        (part_of(grid, whole.astype("i2"), "IJK", HALO), "GHEX has no dtype int16"),
        (part_of(grid, whole[:, 0, 0], "I", ((1, 1),)), r"dims \('I',\) lack \['J'\]"),
        (
            part_of(grid, four, ("I", "J", "K", "0"), (*HALO, (0, 0)), layout=(2, 0, 1, 3)),
            "layout map",
        ),
        (good[:, :, ::-1], "strides"),
        (part_of(grid, whole, "IJK", HALO)[:, :, ::2], "contiguous"),
    ]
    with gridbuf.testing.emulated_device():
        device = gridbuf.storage.zeros(good.shape, dims="IJK", halo=HALO, device="gpu")
        cases.append((device, "is on a device"))
        for field, words in cases:
            with pytest.raises(ValueError, match=f"field 1: .*{words}"):
                gridbuf.mpi.HaloExchange(grid, good, field, engine=engine)
            exchange = gridbuf.mpi.HaloExchange(grid, good, field)
            assert exchange.engine == "mpi4py"
            exchange(good, field)
    turned = part_of(grid, whole, "IJK", HALO, layout=(0, 1, 2) if grid.rank else (2, 1, 0))
    with pytest.raises(ValueError, match="different layouts"):
        gridbuf.mpi.HaloExchange(grid, turned, engine=engine)
    with pytest.raises(ValueError, match="corners=False"):
        gridbuf.mpi.HaloExchange(grid, good, engine=engine, corners=False)


@on_ranks(4, engine=("ghex",))
def test_another_layout_is_refused_by_ghex_at_the_call(engine) -> None:
    grid = gridbuf.mpi.Decomposition({"I": 12, "J": 11}, periodic="IJ")
    whole = whole_field(SHAPE, "f8")
    field = part_of(grid, whole, "IJK", HALO)
    turned = part_of(grid, whole, "IJK", HALO, layout=(2, 1, 0))
    exchange = gridbuf.mpi.HaloExchange(grid, field, engine=engine)
    with pytest.raises(
        ValueError, match=r"field 0: layout must be \(0, 1, 2\).*but is \(2, 1, 0\)"
    ):
        exchange(turned)
    exchange(field)
    np.testing.assert_array_equal(field.to_numpy(), with_halos(grid, whole, "IJK", HALO))


@on_ranks(4, engine=("ghex",))
def test_fields_of_one_level_travel_together_padded_or_not(engine) -> None:
    """Where K has one point the contiguous dimension is J without padding and K with it: two kinds of field to GHEX."""
    grid = gridbuf.mpi.Decomposition({"I": 12, "J": 11}, periodic="IJ")
    wholes = [whole_field((12, 11, 1), "f8", seed) for seed in range(4)]
    fields = [
        part_of(grid, whole, "IJK", HALO, alignment_size=alignment)
        for whole, alignment in zip(wholes, (1, 64, 64, 1), strict=True)
    ]
    assert fields[0].strides != fields[1].strides
    gridbuf.mpi.HaloExchange(grid, *fields, engine=engine)(*fields)
    for whole, field in zip(wholes, fields, strict=True):
        np.testing.assert_array_equal(field.to_numpy(), with_halos(grid, whole, "IJK", HALO))


@on_ranks(4, engine=("ghex",))
def test_the_memory_of_a_field_is_not_kept(engine) -> None:
    """What GHEX knows of a field is forgotten with it."""
    import gc

    grid = gridbuf.mpi.Decomposition({"I": 1 << 12, "J": 8}, ranks={"J": 1}, periodic="I")
    shape = grid.local_shape((1 << 12, 8, 64), halo=((1, 1), (0, 0), (0, 0)))
    halo = ((1, 1), (0, 0), (0, 0))
    exchange = None
    for _ in range(12):
        field = gridbuf.storage.zeros(shape, halo=halo)
        exchange = exchange or gridbuf.mpi.HaloExchange(grid, field, engine=engine)
        exchange(field)
        del field
    gc.collect()
    used = gridbuf.memory.statistics()["live_bytes"]
    assert used < 3 * np.prod(shape) * 8


@on_ranks(4, engine=("ghex",))
def test_both_engines_give_what_ghex_called_directly_gives(engine) -> None:
    """The same field through gridbuf with each engine, and through GHEX's own Python interface."""
    from ghex.context import make_context
    from ghex.structured.cartesian_sets import ProductSet, UnitRange
    from ghex.structured.regular import (
        DomainDescriptor,
        HaloGenerator,
        make_communication_object,
        make_field_descriptor,
        make_pattern,
    )
    from mpi4py import MPI

    grid = gridbuf.mpi.Decomposition({"I": 12, "J": 11}, ranks={"I": 2}, periodic="J")
    whole = whole_field(SHAPE, "f8")
    fields = [part_of(grid, whole, "IJK", HALO) for _ in range(3)]
    for name, field in zip((engine, "mpi4py"), fields[:2], strict=True):
        gridbuf.mpi.HaloExchange(grid, field, engine=name)(field)
    context = make_context(grid.comm, MPI.Query_thread() == MPI.THREAD_MULTIPLE)
    own = ProductSet(
        *(UnitRange(s.start or 0, 4 if s.stop is None else s.stop) for s in grid.slices("IJK"))
    )
    domain = DomainDescriptor(grid.rank, own)
    generator = HaloGenerator(
        ProductSet(*(UnitRange(0, n) for n in SHAPE)), HALO, (False, True, False)
    )
    pattern = make_pattern(context, generator, [domain])
    array = fields[2].to_numpy()
    described = make_field_descriptor(domain, array, (2, 1, 0), array.shape)
    make_communication_object(context).exchange([pattern(described)]).wait()
    for field in fields[:2]:
        np.testing.assert_array_equal(field.to_numpy(), array)


@on_ranks(4)
def test_without_ghex_the_exchange_says_so_and_mpi4py_serves() -> None:
    """On a machine with GHEX it is hidden on one rank, which is enough: the engine is the same on all."""
    import importlib.util

    grid = gridbuf.mpi.Decomposition({"I": 12, "J": 11}, periodic="IJ")
    whole = whole_field(SHAPE, "f8")
    field = part_of(grid, whole, "IJK", HALO)
    find, installed = importlib.util.find_spec, has("ghex")
    if grid.rank == 1:
        importlib.util.find_spec = lambda name, *more: None if name == "ghex" else find(name, *more)
    try:
        exchange = gridbuf.mpi.HaloExchange(grid, field)
        assert exchange.engine == "mpi4py"
        exchange(field)
        if installed:
            error = ImportError if grid.rank == 1 else gridbuf.mpi.HaloExchangeError
            with pytest.raises(error, match="GHEX is not installed: pip install ghex"):
                gridbuf.mpi.HaloExchange(grid, field, engine="ghex")
    finally:
        importlib.util.find_spec = find
    np.testing.assert_array_equal(field.to_numpy(), with_halos(grid, whole, "IJK", HALO))
