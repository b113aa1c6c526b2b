"""Programs on several ranks whose halos know how deep they are valid: no stale point is read, and no right program refused.

A program is a list of steps over three fields: stencils of radius 0 to 3 that compute up to 3 points outside of the domain,
writes of the domain, of its inside and of its ends, and exchanges to a depth. The same program on one rank is the oracle, bit
by bit.
"""

from __future__ import annotations

import itertools
import random
import warnings
from collections.abc import Iterator
from typing import Any, NamedTuple

import gridbuf
import gridbuf.mpi
import gridbuf.storage
import numpy as np
import pytest
from gridbuf.mpi._depths import has_neighbour
from on_ranks import on_ranks
from serial import whole_field

EXTENTS = {"I": 24, "J": 18}
WIDTH = 4
HALO = ((WIDTH, WIDTH), (WIDTH, WIDTH))


class Step(NamedTuple):
    """`what` is "exchange", "stencil", "write" or "inside"; `points` the depth, the points outside, or the margin."""

    what: str
    fields: tuple[int, ...]
    points: int = 0
    radius: int = 0


def star(radius: int) -> gridbuf.Stencil:
    """out = the mean of `first` at this distance along both dimensions, and its corners, and a part of `second`."""

    @gridbuf.stencil(writes="out", extents={"first": radius})
    def compute(
        first: gridbuf.Field[np.float64, gridbuf.IJ],
        second: gridbuf.Field[np.float64, gridbuf.IJ],
        out: gridbuf.Field[np.float64, gridbuf.IJ],
        *,
        origin: Any,
        domain: Any,
    ) -> None:
        def at(array: Any, name: str, i: int, j: int) -> Any:
            (x, y), (nx, ny) = origin[name], domain
            return array[x + i : x + i + nx, y + j : y + j + ny]

        r = radius
        total = 0.5 * at(first, "first", r, 0) + 0.25 * at(first, "first", -r, 0)
        total += 0.125 * at(first, "first", 0, r) + 0.0625 * at(first, "first", 0, -r)
        total += 0.03125 * at(first, "first", r, r) + 0.015625 * at(first, "first", -r, -r)
        total += 0.01 * at(second, "second", 0, 0)
        at(out, "out", 0, 0)[...] = total

    return compute


STARS = [star(radius) for radius in range(4)]


def run(grid: Any, program: list[Step], parts: Any = None, **keywords: Any) -> list[Any]:
    """The fields of this rank after a program. StaleHaloError, on all ranks, where one raises it.

    `parts` are those of a field that are written inside, of other ranks where this one has all.
    """
    fields = []
    parts = parts or [tuple(slice(0, n) for n in grid.local_extents.values())]
    for seed in range(3):
        field = grid.zeros(tuple(EXTENTS.values()), dims="IJ", halo=HALO)
        field.domain_view[...] = whole_field(tuple(EXTENTS.values()), "f8", seed)[grid.slices("IJ")]
        fields.append(field)
    for step in program:
        chosen = [fields[n] for n in step.fields]
        error = None
        if step.what == "exchange":
            grid.exchange(*chosen, depth=step.points)
        elif step.what == "write":
            for field in chosen:
                field.domain_view[...] = 0.5 * field.domain_view
        elif step.what == "inside":
            for field, part in itertools.product(chosen, parts):
                inner = tuple(
                    slice(WIDTH + p.start + step.points, WIDTH + p.stop - step.points) for p in part
                )
                field[inner] = 0.5 * field[inner]
        else:
            # The halo at an end of the grid is the program's, which does not change it: zero.
            outside = [
                [step.points if has_neighbour(grid, dim, end) else 0 for end in (0, 1)]
                for dim in "IJ"
            ]
            domain = [n + sum(o) for n, o in zip(grid.local_extents.values(), outside, strict=True)]
            try:
                STARS[step.radius](
                    *chosen,
                    origin=tuple(WIDTH - lower for lower, _ in outside),
                    domain=tuple(domain),
                    **keywords,
                )
            except gridbuf.StaleHaloError as caught:
                error = caught
        if any(grid.comm.allgather(error is not None)):
            raise error or gridbuf.StaleHaloError("on another rank")
    return fields


def truth(grid: Any, alone: Any, program: list[Step]) -> list[Any]:
    """The fields on one rank, with whole halos filled before each stencil."""
    parts = [grid.slices("IJ", rank) for rank in range(grid.size)]
    filled = []
    for step in program:
        if step.what == "stencil":
            filled.append(Step("exchange", (0, 1, 2), WIDTH))
        if step.what != "exchange":
            filled.append(step)
    return run(alone, filled, parts, halo_check="off")


def gathered(grid: Any, fields: list[Any]) -> list[Any]:
    return [grid.comm.bcast(grid.gather(field)) for field in fields]


def right_program(draw: random.Random) -> list[Step]:
    """Random steps, and before each stencil an exchange of what it would read stale."""
    valid = [0, 0, 0]
    steps: list[Step] = []
    while len(steps) < 14:
        what = draw.choice(["stencil", "stencil", "stencil", "write", "inside"])
        if what == "write":
            field = draw.randrange(3)
            steps.append(Step("write", (field,)))
            valid[field] = 0
        elif what == "inside":
            field, margin = draw.randrange(3), draw.randrange(4)
            steps.append(Step("inside", (field,), margin))
            valid[field] = min(valid[field], margin)
        else:
            first, second, out = draw.sample(range(3), 3)
            radius = draw.randrange(4)
            outside = draw.randrange(WIDTH - radius + 1)
            needs = {first: outside + radius, second: outside}
            missing = tuple(field for field, depth in needs.items() if valid[field] < depth)
            if missing:
                depth = max(needs[field] for field in missing)
                depth = draw.choice([depth, draw.randint(depth, WIDTH)])
                steps.append(Step("exchange", missing, depth))
                for field in missing:
                    valid[field] = max(valid[field], depth)
            steps.append(Step("stencil", (first, second, out), outside, radius))
            valid[out] = outside
    return steps


def mutated(program: list[Step], draw: random.Random) -> list[Step]:
    """With one exchange dropped, made less deep, for fewer fields, or moved."""
    at = draw.choice([n for n, step in enumerate(program) if step.what == "exchange"])
    step, rest = program[at], [*program[:at], *program[at + 1 :]]
    how = draw.choice(["drop", "shorten", "fewer", "move"])
    if how == "drop":
        return rest
    if how == "shorten":
        step = step._replace(points=draw.randrange(step.points) if step.points else 0)
    elif how == "fewer":
        step = step._replace(fields=step.fields[1:] or step.fields[:1])
    else:
        at = draw.randrange(len(rest) + 1)
    return [*rest[:at], step, *rest[at:]]


def grids(periodic: str, **keywords: Any) -> tuple[Any, Any]:
    """The decomposition, and the whole grid on each rank alone."""
    from mpi4py import MPI

    return tuple(
        gridbuf.mpi.Decomposition(EXTENTS, periodic=periodic, comm=comm, **keywords)
        for comm in (MPI.COMM_WORLD, MPI.COMM_SELF)
    )


def programs(count: int) -> Iterator[tuple[str, list[Step], random.Random]]:
    for seed in range(count):
        draw = random.Random(seed)
        yield draw.choice(["", "I", "IJ"]), right_program(draw), draw


def check_right_programs(count: int, *modes: str) -> None:
    made = {periodic: grids(periodic) for periodic in ("", "I", "IJ")}
    for periodic, program, _ in programs(count):
        grid, alone = made[periodic]
        expected = truth(grid, alone, program)
        for mode in modes:
            with warnings.catch_warnings():
                warnings.simplefilter("error", gridbuf.StaleHaloWarning)
                got = gathered(grid, run(grid, program, halo_check=mode))
            for want, have in zip(expected, got, strict=True):
                np.testing.assert_array_equal(want.domain_view.to_numpy(), have)


@on_ranks(4)
def test_no_right_program_is_refused_and_all_modes_give_what_one_rank_gives() -> None:
    check_right_programs(300, "raise", "off")
    check_right_programs(60, "warn", "exchange")


@on_ranks(1)
def test_all_modes_on_one_rank() -> None:
    check_right_programs(60, "raise", "off", "warn", "exchange")


@on_ranks(6)
def test_all_modes_on_six_ranks() -> None:
    check_right_programs(20, "raise", "off", "warn", "exchange")


@on_ranks(6)
def test_without_any_exchange_the_mode_exchange_gives_what_one_rank_gives() -> None:
    made = {periodic: grids(periodic, halo_check="exchange") for periodic in ("", "I", "IJ")}
    for periodic, program, _ in programs(40):
        grid, alone = made[periodic]
        steps = [step for step in program if step.what != "exchange"]
        expected = truth(grid, alone, steps)
        got = gathered(grid, run(grid, steps))
        for want, have in zip(expected, got, strict=True):
            np.testing.assert_array_equal(want.domain_view.to_numpy(), have)


@on_ranks(4)
def test_a_wrong_exchange_is_found_or_changes_nothing() -> None:
    made = {periodic: grids(periodic) for periodic in ("", "I", "IJ")}
    raised = unchanged = 0
    for periodic, program, draw in programs(300):
        if not any(step.what == "exchange" for step in program):
            continue
        grid, alone = made[periodic]
        wrong = mutated(program, draw)
        try:
            got = gathered(grid, run(grid, wrong))
        except gridbuf.StaleHaloError:
            raised += 1
            continue
        unchanged += 1
        expected = truth(grid, alone, wrong)
        for want, have in zip(expected, got, strict=True):
            np.testing.assert_array_equal(want.domain_view.to_numpy(), have)
    assert raised > 50 and unchanged > 20
    if made[""][0].rank == 0:
        print(f"{raised} mutations were raised, {unchanged} change nothing")


@on_ranks(4)
def test_an_exchange_sends_what_is_missing() -> None:
    grid = gridbuf.mpi.Decomposition({"I": 16}, periodic="I")
    field = grid.zeros((16, 5), dims="IJ", halo=((3, 3), (0, 0)))
    exchange = gridbuf.mpi.HaloExchange(grid, field, engine="mpi4py")
    row = 5 * 8
    exchange(field)
    assert exchange.traffic == (0, 0)  # zeros are equal everywhere
    field.domain_view[...] = grid.rank
    exchange(field, depth=1)
    assert exchange.traffic == (2, 2 * row)
    assert field.valid_halo == ((1, 1), (0, 0))
    exchange(field)
    assert exchange.traffic == (4, 6 * row)
    exchange(field)
    assert exchange.traffic == (4, 6 * row)
    field[5] = -1  # two points from the lower end, one from the upper: 3 + 4 points
    assert field.valid_halo == ((1, 2), (0, 0))
    exchange(field)
    assert exchange.traffic == (6, 9 * row)
    # A rank that wrote alone: what it changed is sent, and no rank waits.
    if grid.rank == 2:
        field[3] = 7
    exchange(field)
    assert exchange.traffic[0] == 7
    # Writes through an export are not seen.
    field.to_numpy()[...] = grid.rank
    exchange(field)
    assert exchange.traffic[0] == 9
    assert set(field.to_numpy()[:3].ravel()) == {(grid.rank - 1) % 4}


@on_ranks(4)
def test_the_error_names_field_dimension_depths_and_line() -> None:
    grid = gridbuf.mpi.Decomposition({"I": 16, "J": 8}, periodic="I")
    first, second, out = (grid.zeros((16, 8), dims="IJ", halo=((2, 2), (2, 2))) for _ in range(3))
    first.domain_view[...] = 1.0
    with pytest.raises(
        gridbuf.StaleHaloError,
        match=r"field 'first', dimension 'I': stencil 'compute' reads 2 points of the lower halo, of which 0 are valid; it "
        r"was written at .*test_valid_halo.py:\d+",
    ):
        STARS[2](first, second, out)
    with pytest.warns(gridbuf.StaleHaloWarning, match="of which 0 are valid"):
        STARS[2](first, second, out, halo_check="warn")
    STARS[2](first, second, out, halo_check="off")
    STARS[2](first, second, out, halo_check="exchange")
    assert first.valid_halo[0] == (2, 2)
    with pytest.raises(ValueError, match="halo_check is 'on', but must be one of 'off'"):
        STARS[2](first, second, out, halo_check="on")


@on_ranks(4)
def test_what_arrives_is_what_was_sent() -> None:
    """A write between start and wait is not in the halos of the others."""
    grid = gridbuf.mpi.Decomposition({"I": 16}, periodic="I")
    field = grid.zeros((16,), dims="I", halo=((2, 2),))
    field.domain_view[...] = 1.0
    exchange = gridbuf.mpi.HaloExchange(grid, field)
    pending = exchange.start(field)
    assert field.valid_halo == ((0, 0),)
    field[3] = 2.0  # the second point of the domain
    pending.wait()
    assert field.valid_halo == ((2, 1),)
    with pytest.raises(ValueError, match="depth is -1"):
        exchange(field, depth=-1)


LINE = gridbuf.Field[np.float64, gridbuf.I]


def ring(**keywords: Any) -> tuple[Any, Any]:
    """A periodic decomposition along I, and a field of it with a halo of two points."""
    grid = gridbuf.mpi.Decomposition({"I": 16}, periodic="I", **keywords)
    return grid, grid.zeros((16,), dims="I", halo=((2, 2),))


@on_ranks(4)
def test_writes_that_gridbuf_cannot_see_are_sent() -> None:
    grid, field = ring()
    exported = np.from_dlpack(field)
    memory = np.zeros(field.shape)
    wrapped = grid.adopt(gridbuf.storage.as_storage(memory, dims="I", halo=((2, 2),)))
    for value in range(2):
        exported[2:-2] = memory[2:-2] = 10 * value + grid.rank
        grid.exchange(field, wrapped)
        lower = 10 * value + (grid.rank - 1) % 4
        assert field.to_numpy()[:2].tolist() == wrapped.to_numpy()[:2].tolist() == [lower, lower]


@on_ranks(4)
def test_fields_of_no_decomposition_are_sent_whole() -> None:
    """The ranks do not agree on anything, so that nothing may be left out, and no depth be asked for."""
    grid = gridbuf.mpi.Decomposition({"I": 16}, periodic="I")
    field = gridbuf.storage.zeros((8,), dims="I", halo=((2, 2),))
    exchange = gridbuf.mpi.HaloExchange(grid, field, engine="mpi4py")
    for step in range(2):
        exchange(field)
        assert exchange.traffic == (2 + 2 * step, (2 + 2 * step) * 2 * 8)
        assert field.valid_halo == ((2, 2),)
    if grid.rank == 0:
        with pytest.raises(
            ValueError,
            match=r"depth is 1, but must be left out .* pass the fields to Decomposition.adopt",
        ):
            exchange(field, depth=1)
    elif grid.rank in (1, 3):  # its neighbours
        with pytest.raises(gridbuf.mpi.HaloExchangeError):
            exchange(field)
    else:
        exchange(field)
    grid.exchange(field)  # that of such fields
    grid.adopt(field)
    field[...] = 1.0
    grid.exchange(field, depth=1)
    assert field.valid_halo == ((1, 1),) and grid.traffic == (4, 2 * 2 * 8 + 2 * 8)


@on_ranks(4)
def test_a_halo_without_its_corners_is_not_valid() -> None:
    grid = gridbuf.mpi.Decomposition({"I": 8, "J": 8}, periodic="IJ")
    field = grid.zeros((8, 8), dims="IJ", halo=(1, 1))
    field.domain_view[...] = 1.0 + grid.rank
    gridbuf.mpi.HaloExchange(grid, field, corners=False)(field)
    assert field.valid_halo == ((0, 0), (0, 0))
    grid.exchange(field)
    assert field.valid_halo == ((1, 1), (1, 1)) and float(field[0, 0]) > 0
    along_one = grid.zeros((8, 8), dims="IJ", halo=(1, 0))
    along_one.domain_view[...] = 1.0
    gridbuf.mpi.HaloExchange(grid, along_one, corners=False)(along_one)
    assert along_one.valid_halo == ((1, 1), (0, 0))


@on_ranks(4)
def test_another_halo_is_exchanged_whole() -> None:
    grid = gridbuf.mpi.Decomposition({"I": 64}, periodic="I")
    field = grid.zeros((64,), dims="I", halo=((1, 1),))
    wide = gridbuf.storage.zeros((20,), dims="I", halo=((1, 1),))
    wide[...] = 20.0 * grid.rank + np.arange(20.0)
    wide.halo = ((2, 2),)
    grid.exchange(field, grid.adopt(wide))
    assert wide.valid_halo == ((2, 2),)
    before = 20.0 * ((grid.rank - 1) % 4)
    assert wide.to_numpy()[:2].tolist() == [before + 16, before + 17]


@on_ranks(4)
def test_on_demand_all_ranks_exchange_whatever_they_miss() -> None:
    """Ranks at an end of the grid miss nothing; one field is read by two rules; fields are of two decompositions."""

    @gridbuf.stencil(writes="out", extents={"a": [(2, 0)], "b": [(0, 1)]})
    def compute(a: LINE, b: LINE, out: LINE) -> None:
        out[2:-2] = a[:-4] + b[3:-1]

    grid = gridbuf.mpi.Decomposition({"I": 16}, halo_check="exchange")
    field, other, out = (grid.zeros((16,), dims="I", halo=((2, 2),)) for _ in range(3))
    second, field_of_second = ring(halo_check="exchange")
    for step in range(3):
        for one in (field, other, field_of_second):
            one.domain_view[...] = 10.0 * step + grid.rank
        compute(field, other, out)
        below = 10.0 * step + grid.rank - 1 if grid.rank else 0.0
        assert float(out[2]) == below + 10.0 * step + grid.rank
        field.domain_view[...] = field.domain_view + 1
        compute(field, field, out)
        above = 10.0 * step + grid.rank + 2 if grid.rank < 3 else 0.0
        assert float(out[5]) == 10.0 * step + grid.rank + 1 + above
        compute(field_of_second, other, out)
        assert float(out[2]) == 10.0 * step + (grid.rank - 1) % 4 + 10.0 * step + grid.rank
    assert grid.traffic[0] > 0 and second.traffic[0] > 0


@on_ranks(1)
def test_a_rank_that_is_its_own_neighbour_has_a_valid_halo() -> None:
    import gridbuf.testing

    with gridbuf.testing.emulated_device():
        for kind in ({}, {"device": "gpu", "managed": "gt4py"}, {"device": "gpu", "managed": None}):
            grid = gridbuf.mpi.Decomposition({"I": 6}, periodic="I")
            field = grid.zeros((6,), dims="I", halo=((2, 1),), lower=(-2,), **kind)
            field.domain_view[...] = np.arange(6.0)
            assert field.valid_halo == ((0, 0),)
            grid.exchange(field)
            assert field.valid_halo == ((2, 1),)
            assert gridbuf.storage.storage(field, device=None).to_numpy().tolist() == [
                4.0,
                5.0,
                0.0,
                1.0,
                2.0,
                3.0,
                4.0,
                5.0,
                0.0,
            ]


@on_ranks(4)
def test_depths_of_two_dimensions_have_their_corners() -> None:
    """Valid points have the values of the whole grid, whatever was exchanged, with and without corners."""
    draw = random.Random("corners")
    size, part = 8, 4
    grid = gridbuf.mpi.Decomposition({"I": size, "J": size}, periodic="IJ")
    field = grid.zeros((size, size), dims="IJ", halo=(2, 2))
    without = gridbuf.mpi.HaloExchange(grid, field, corners=False, engine="mpi4py")
    whole = np.zeros((size, size))
    seen = set()
    for step in range(400):
        depth = [[[draw.randint(0, 2) for _ in range(2)] for _ in "IJ"]]
        box = tuple(slice(*sorted(draw.sample(range(part + 1), 2))) for _ in "IJ")
        rank = draw.randrange(grid.comm.size)
        what = draw.choice(["write", "stale", "exchange", "exchange", "without corners"])
        if what == "write":
            for other in range(grid.comm.size):
                whole[grid.slices("IJ", other)][box] = step + other / 8
            field.domain_view[box] = step + grid.rank / 8
        elif what == "exchange":
            grid.exchange(field, depth=depth)
        elif what == "without corners":
            without(field, depth=depth)
        elif rank == grid.rank:
            field.mark_halo_stale()
        (top, bottom), (left, right) = field.valid_halo
        i, j = (np.arange(one.start, one.stop) for one in grid.slices("IJ"))
        i = np.arange(i[0] - top, i[-1] + 1 + bottom) % size
        j = np.arange(j[0] - left, j[-1] + 1 + right) % size
        valid = field[2 - top : 2 + part + bottom, 2 - left : 2 + part + right]
        np.testing.assert_array_equal((valid + 0).to_numpy(), whole[np.ix_(i, j)])
        seen.add(field.valid_halo)
    assert len(seen) > 20
