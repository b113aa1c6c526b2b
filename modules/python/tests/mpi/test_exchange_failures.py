"""Errors name field, dimension, wanted and found; and a rank that fails leaves no rank waiting and nothing behind."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

import gridbuf.mpi
import gridbuf.storage
import numpy as np
import pytest
from on_ranks import environment, launcher, on_ranks
from serial import part_of, whole_field, with_halos

ENGINES = ("mpi4py", "ghex")
HALO = ((1, 1), (2, 1), (0, 0))
SHAPE = (10, 9, 3)


def decomposed(periodic: str = "IJ", *, shared: bool = False) -> gridbuf.mpi.Decomposition:
    return gridbuf.mpi.Decomposition(
        {"I": 10, "J": 9}, ranks={"I": 2}, periodic=periodic, shared=shared
    )


def one_fails(grid, failing, make, words, error=ValueError) -> None:
    """`make(fails)` raises on all ranks: its own error on the one that fails, which the others name."""
    if grid.rank == failing:
        with pytest.raises(error, match=words):
            make(True)
    else:
        with pytest.raises(gridbuf.mpi.HaloExchangeError, match=f"rank {failing} failed.*{words}"):
            make(False)


@on_ranks(4, engine=ENGINES)
def test_a_rank_that_refuses_its_field_tells_the_others(engine) -> None:
    """When the exchange is made: extents, kinds of object, number of fields."""
    grid = decomposed()
    good = part_of(grid, whole_field(SHAPE, "f8"), "IJK", HALO)

    def make(bad):
        def construct(fails: bool) -> None:
            gridbuf.mpi.HaloExchange(grid, good, *([bad] if fails else [good]), engine=engine)

        return construct

    longer = gridbuf.storage.zeros((9, *good.shape[1:]), dims="IJK", halo=HALO)
    words = r"field 1, dimension 'I': the extent must be 7 on rank 1 .*but is 9"
    one_fails(grid, 1, make(longer), words)
    one_fails(grid, 2, make(np.zeros(3)), "field 1 is a ndarray", TypeError)
    one_fails(grid, 0, make(None), "field 1 is a NoneType", TypeError)


@on_ranks(4)
def test_ranks_that_disagree_all_learn_of_it() -> None:
    grid = decomposed()
    second = grid.rank == 2
    whole = whole_field(SHAPE, "f8")
    good = part_of(grid, whole, "IJK", HALO)
    cases = (
        (part_of(grid, whole, "IJK", ((1, 1), (1, 1), (0, 0))), "dimension 'J': the halo must be .2, 1., .*but is .1, 1."),
        (part_of(grid, whole_field((10, 9, 4), "f8"), "IJK", HALO), "dimension 'K': the extent must be 3, .*but is 4"),
        (part_of(grid, whole.astype("f4"), "IJK", HALO), "dtype must be float64, .*but is float32"),
        (part_of(grid, whole.transpose(1, 0, 2), "JIK", HALO), "dims must be .'I', 'J', 'K'.*but is .'J', 'I', 'K'"),
    )  # fmt: skip
    for bad, words in cases:
        with pytest.raises(ValueError, match=f"rank 2, field 0.*{words}"):
            gridbuf.mpi.HaloExchange(grid, bad if second else good)
    with pytest.raises(ValueError, match="rank 2 exchanges 2 fields, but rank 0 1"):
        gridbuf.mpi.HaloExchange(grid, *([good] * (1 + second)))
    with pytest.raises(ValueError, match="rank 2 asks for engine='mpi4py'"):
        gridbuf.mpi.HaloExchange(grid, good, engine="mpi4py" if second else None)
    gridbuf.mpi.HaloExchange(grid, good)(good)


@on_ranks(4)
def test_a_halo_is_no_wider_than_the_part_that_fills_it() -> None:
    grid = gridbuf.mpi.Decomposition({"I": 10}, sizes={"I": (4, 3, 1, 2)})
    field = gridbuf.storage.zeros(grid.local_shape((10,), halo=((1, 2),)), dims="I", halo=((1, 2),))
    with pytest.raises(
        ValueError, match="field 0, dimension 'I': the halo must be at most 1.*is .1, 2."
    ):
        gridbuf.mpi.HaloExchange(grid, field)


@on_ranks(4)
def test_wrong_arguments_say_what_is_right() -> None:
    from mpi4py import MPI

    with pytest.raises(ValueError, match="all ranks must ask for the same"):
        decomposed(shared=MPI.COMM_WORLD.rank == 1)
    for grid in (decomposed(), decomposed(shared=True)):
        refuse_wrong_arguments(grid)
    with pytest.raises(ValueError, match="shared=True, and GHEX does not read"):
        field = part_of(grid, whole_field(SHAPE, "f8"), "IJK", HALO)
        gridbuf.mpi.HaloExchange(grid, field, engine="ghex")


def refuse_wrong_arguments(grid: gridbuf.mpi.Decomposition) -> None:
    field = part_of(grid, whole_field(SHAPE, "f8"), "IJK", HALO)
    with pytest.raises(ValueError, match="engine is 'nccl'"):
        gridbuf.mpi.HaloExchange(grid, field, engine="nccl")
    with pytest.raises(ValueError, match="no field"):
        gridbuf.mpi.HaloExchange(grid)


@on_ranks(4, engine=("mpi4py", "ghex", None))
def test_a_field_without_a_halo_is_refused_on_any_number_of_ranks(engine) -> None:
    """Nothing could be filled. A field without a cut dimension is whole on every rank, and may have no halo."""
    from mpi4py import MPI

    for world in (MPI.COMM_WORLD, MPI.COMM_SELF):
        for periodic in ("", "IJ"):
            grid = gridbuf.mpi.Decomposition({"I": 10, "J": 9}, periodic=periodic, comm=world)
            for dims, shape in (("IJK", SHAPE), ("KJ", (3, 9)), ("I", (10,))):
                cut = [axis for axis, dim in enumerate(dims) if dim in "IJ"]
                for filled in (None, *cut):
                    halo = [(0, 0) if dim in "IJ" else (1, 1) for dim in dims]
                    if filled is not None:
                        halo[filled] = (0, 1)
                    local = grid.local_shape(shape, dims=dims, halo=halo)
                    field = gridbuf.storage.zeros(local, dims=dims, halo=halo)
                    if filled is not None:
                        gridbuf.mpi.HaloExchange(grid, field, engine="mpi4py").close()
                        continue
                    names = ", ".join(repr(dims[axis]) for axis in cut)
                    words = (
                        f"field 0, dimensions {names}: the halo must have at least 1 point.*but is"
                    )
                    with pytest.raises(ValueError, match=words):
                        gridbuf.mpi.HaloExchange(grid, field, engine=engine)
            column = gridbuf.storage.zeros((3,), dims="K")
            gridbuf.mpi.HaloExchange(grid, column, engine="mpi4py")(column)


@on_ranks(4, engine=(*ENGINES, "shared"))
def test_a_rank_that_fails_at_an_exchange_leaves_no_rank_waiting(engine) -> None:
    """Its neighbours raise as well, nothing is left behind, and the next exchange is as if nothing had been."""
    grid = decomposed(shared=engine == "shared")
    engine = "mpi4py" if engine == "shared" else engine
    whole = whole_field(SHAPE, "f8")
    field = part_of(grid, whole, "IJK", HALO)
    exchange = gridbuf.mpi.HaloExchange(grid, field, engine=engine)
    other = gridbuf.storage.zeros(field.shape, dims="IJK", halo=((1, 1), (1, 2), (0, 0)))
    for failing in range(4):
        for wrong, error, words in (
            (other, ValueError, r"field 0, dimension 'J': the halo must be \(2, 1\), .*but is \(1, 2\)"),
            (field.astype("f4"), ValueError, "dtype must be float64"),
            (field[:, :, :2], ValueError, "dimension 'K': the extent must be 3, .*but is 2"),
            (field.T, ValueError, "dims must be"),
            (field.to_numpy(), TypeError, "is a ndarray"),
        ):  # fmt: skip
            if grid.rank == failing:
                with pytest.raises(error, match=words):
                    exchange(wrong)
            else:
                with pytest.raises(
                    gridbuf.mpi.HaloExchangeError, match=f"rank .*{failing}.* failed"
                ):
                    exchange(field)
        exchange(field)
        np.testing.assert_array_equal(field.to_numpy(), with_halos(grid, whole, "IJK", HALO))


@on_ranks(4)
def test_only_neighbours_of_a_rank_that_fails_learn_of_it_with_mpi4py() -> None:
    """The others get what they asked for: no rank waits for one that it does not exchange with."""
    grid = gridbuf.mpi.Decomposition({"I": 12})
    whole = whole_field((12,), "f8")
    field = part_of(grid, whole, "I", ((1, 1),))
    exchange = gridbuf.mpi.HaloExchange(grid, field, engine="mpi4py")
    before = field.to_numpy().copy()
    if grid.rank == 0:
        with pytest.raises(ValueError, match="called with 2"):
            exchange(field, field)
        np.testing.assert_array_equal(field.to_numpy(), before)
    elif grid.rank == 1:
        with pytest.raises(gridbuf.mpi.HaloExchangeError, match=r"rank \[0\] failed"):
            exchange(field)
        expected = with_halos(grid, whole, "I", ((1, 1),))
        expected[0] = before[0]  # What rank 0 would have sent; rank 2 has sent its point.
        np.testing.assert_array_equal(field.to_numpy(), expected)
    else:
        exchange(field)
        np.testing.assert_array_equal(field.to_numpy(), with_halos(grid, whole, "I", ((1, 1),)))


@on_ranks(4, engine=ENGINES)
def test_all_ranks_learn_of_a_rank_that_refuses_its_fields(engine) -> None:
    """Of fields of a decomposition, before anything is sent: no halo changes."""
    grid = gridbuf.mpi.Decomposition({"I": 12})
    field = grid.adopt(part_of(grid, whole_field((12,), "f8"), "I", ((1, 1),)))
    exchange = gridbuf.mpi.HaloExchange(grid, field, engine=engine)
    before = field.to_numpy().copy()
    if grid.rank == 0:
        with pytest.raises(ValueError, match="called with 2"):
            exchange(field, field)
    else:
        with pytest.raises(gridbuf.mpi.HaloExchangeError, match="rank 0 failed before it sent"):
            exchange(field)
    np.testing.assert_array_equal(field.to_numpy(), before)


@on_ranks(4, engine=ENGINES)
def test_a_read_only_field_is_refused(engine) -> None:
    """When the exchange is made and when it is called: its halo is to be written."""
    grid = decomposed()
    good = part_of(grid, whole_field(SHAPE, "f8"), "IJK", HALO)
    values = good.to_numpy().copy()
    values.flags.writeable = False
    bad = gridbuf.storage.as_storage(values, dims="IJK", halo=HALO)

    def make(fails: bool) -> None:
        gridbuf.mpi.HaloExchange(grid, bad if fails else good, engine=engine)

    one_fails(grid, 1, make, "field 0 is read-only")
    exchange = gridbuf.mpi.HaloExchange(grid, good, engine=engine)
    with pytest.raises(
        ValueError if grid.rank == 1 else gridbuf.mpi.HaloExchangeError, match="read-only|failed"
    ):
        exchange(bad if grid.rank == 1 else good)


PROGRAM = """
import sys
import gridbuf.mpi, gridbuf.storage
grid = gridbuf.mpi.Decomposition({"I": 8}, periodic="I")
u = gridbuf.storage.zeros(grid.local_shape((8,), halo=((1, 1),)), halo=((1, 1),))
exchange = gridbuf.mpi.HaloExchange(grid, u, engine=sys.argv[1])
exchange(u)
if grid.rank == 1:
    raise KeyError("a stencil failed")
exchange(u)
"""


@pytest.mark.parametrize("engine", ENGINES)
def test_an_error_between_exchanges_ends_all_ranks_under_mpi4pys_run(
    engine: str, tmp_path: Path
) -> None:
    """`mpiexec -n 4 python -m mpi4py program.py` is how such programs are started: without it the other ranks never end."""
    pytest.importorskip(engine, reason="NOT run: install the peers with `./bazelw --peers`")
    program = tmp_path / "program.py"
    program.write_text(PROGRAM)
    started = time.monotonic()
    done = subprocess.run(
        [*launcher(4), sys.executable, "-m", "mpi4py", str(program), engine],
        env=environment(),
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode != 0
    assert "a stencil failed" in done.stderr
    assert time.monotonic() - started < 60
