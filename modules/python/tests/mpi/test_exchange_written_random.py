"""Random writes of all kinds between random exchanges: halos are those of an exchange that sends everything, bit for bit.

The twin of each field gets the same values through the same call, and an exchange that sends everything.
"""

from __future__ import annotations

import gc

import gridbuf
import gridbuf.mpi
import gridbuf.storage
import numpy as np
from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st
from on_ranks import on_ranks
from serial import part_of, whole_field

ENGINES = ("mpi4py", "ghex")
RANKS = 4
PLACES = 2
EACH = 3
"""Storages in turn at each place."""

ways = st.sampled_from(
    (
        "assign",
        "fill",
        "iadd",
        "copyto",
        "out",
        "mask",
        "steps",
        "view",
        "marked",
        "dlpack",
        "array",
    )
)
boxes = st.tuples(st.integers(0, 2**16), st.integers(1, 5), st.booleans())
writes = st.tuples(
    st.just("write"),
    st.integers(0, 2 ** (RANKS) - 1),  # the ranks that write
    st.integers(0, PLACES - 1),
    st.integers(0, EACH - 1),
    ways,
    boxes,
)
holds = st.tuples(
    st.sampled_from(("hold", "poke", "drop")),
    st.integers(0, 2**RANKS - 1),
    st.integers(0, PLACES - 1),
    st.integers(0, EACH - 1),
    ways,
    boxes,
)
exchanges = st.tuples(
    st.sampled_from(("exchange", "exchange", "overlap", "fail")),
    st.integers(0, 2**16),
    st.integers(0, EACH - 1),
    st.integers(0, EACH - 1),
    ways,
    boxes,
)
sequences = st.lists(st.one_of(writes, exchanges, exchanges, holds), min_size=4, max_size=24)


class Run:
    """One sequence on one decomposition, with an exchange of each kind."""

    def __init__(self, engine, extents, ranks, periodic, halo, send) -> None:
        self.grid = gridbuf.mpi.Decomposition(extents, ranks=ranks, periodic=periodic)
        shape = (*extents.values(), 3)[: len(halo)]
        dims = "IJK"[: len(halo)] if len(extents) == 2 else "IK"
        self.fields, self.twins = [], []
        for place in range(PLACES):
            wholes = [whole_field(shape, "float64", 10 * place + n) for n in range(EACH)]
            layouts = ("gt:cpu_kfirst", "gt:cpu_ifirst")
            make = [
                part_of(self.grid, whole, dims, halo, defaults=layouts[place]) for whole in wholes
            ]
            self.fields.append(make)
            self.twins.append([part_of(self.grid, whole, dims, halo) for whole in wholes])
        self.exchange = gridbuf.mpi.HaloExchange(
            self.grid, *[f[0] for f in self.fields], engine=engine, send=send
        )
        self.all = gridbuf.mpi.HaloExchange(self.grid, *[f[0] for f in self.twins], engine="mpi4py")
        self.held: dict[tuple[int, int], tuple[np.ndarray, np.ndarray]] = {}
        self.value = 100.0 * self.grid.rank

    def play(self, sequence) -> None:
        for what, number, place, which, way, box in sequence:
            self.value += 1
            if what in ("exchange", "overlap", "fail"):
                # Here `number` says who fails or which ranks take turns, `place` and `which` are storages.
                self._exchange(what, number, place, which, way, box)
            elif number >> self.grid.rank & 1:
                getattr(self, "_" + what)(place, which, way, box)
        self._exchange("exchange", 0, 0, 0, "assign", (0, 1, False))
        self.held.clear()
        self.exchange.close()
        self.all.close()
        self.grid.close()

    def _exchange(self, what, number, first, second, way, box) -> None:
        # Ranks need not pass the same storages: what comes belongs to the storage that its sender passed.
        chosen = (
            (second, first)
            if what == "exchange" and number >> self.grid.rank & 1
            else (first, second)
        )
        mine = [fields[n] for fields, n in zip(self.fields, chosen, strict=True)]
        twins = [fields[n] for fields, n in zip(self.twins, chosen, strict=True)]
        if what == "fail":
            # Halos may be filled on some ranks only; the exchange after it is what counts.
            try:
                self.exchange(*(mine[:1] if number % RANKS == self.grid.rank else mine))
            except (ValueError, gridbuf.mpi.HaloExchangeError):
                pass
        pending = [self.exchange.start(*mine), self.all.start(*twins)]
        if what == "overlap":
            # The domain may be written while messages are under way; the halo is nobody's.
            for field in (mine[0], twins[0]):
                field.domain_view[...] = self.value
        for one in pending:
            one.wait()
        wrong = [
            place
            for place, (field, twin) in enumerate(zip(mine, twins, strict=True))
            if not np.array_equal(gridbuf.storage.storage(field).to_numpy(), twin.to_numpy())
        ]
        # All ranks fail together: Hypothesis plays again what failed, on each of them.
        found = self.grid.comm.allgather(wrong)
        assert not any(found), f"places that differ, by rank: {found}, after {what} of {chosen}"

    def _write(self, place, which, way, box) -> None:
        start, *rest = box
        for fields in (self.fields, self.twins):
            for place_of_box in (start, start // 3 + 5):  # Two boxes, mostly apart.
                write(fields[place][which], way, (place_of_box, *rest), self.value)

    def _hold(self, place, which, way, box) -> None:
        pair = (self.fields[place][which], self.twins[place][which])
        self.held[place, which] = tuple(
            np.from_dlpack(f) if way == "dlpack" else np.asarray(f) for f in pair
        )

    def _poke(self, place, which, way, box) -> None:
        for array in self.held.get((place, which), ()):
            array[key_of(array.shape, box)] = self.value

    def _drop(self, place, which, way, box) -> None:
        self._poke(place, which, way, box)
        self.held.pop((place, which), None)
        gc.collect(0)


def key_of(shape, box):
    """Some box: anywhere, the halo included, or all."""
    place, length, everywhere = box
    if everywhere:
        return ...
    key = []
    for extent in shape:
        place, start = divmod(place, extent)
        key.append(slice(start, start + length))
    return tuple(key)


def write(field, way, box, value) -> None:
    part = field[key_of(field.shape, box)]
    if way == "assign":
        field[key_of(field.shape, box)] = value
    elif way == "fill":
        part.fill(value)
    elif way == "iadd":
        part += value
    elif way == "copyto":
        gridbuf.copyto(part, np.full(part.shape, value))
    elif way == "out":
        np.add(part, value, out=part)
    elif way == "mask":
        field[np.asarray(field) > value / 2] = value
    elif way == "steps":
        part[::2] = value
    elif way == "view":
        part.T[...] = value
    elif way == "marked":
        part._own_memory()[...] = value
        part.set_host_modified()
    elif way == "dlpack":
        np.from_dlpack(part)[...] = value
    else:
        part.to_numpy()[...] = value


GRIDS = (
    ({"I": 13}, {}, "", ((2, 1), (0, 0))),
    ({"I": 13}, {}, "I", ((2, 1), (0, 0))),
    ({"I": 11, "J": 9}, {"I": 2}, "IJ", ((2, 1), (1, 2), (0, 0))),
    ({"I": 11, "J": 9}, {"I": 2}, "J", ((1, 1), (0, 2), (0, 0))),
    ({"I": 13, "J": 5}, {"I": 4}, "IJ", ((2, 1), (1, 2), (0, 0))),
)


@on_ranks(RANKS, engine=ENGINES)
def test_random_writes_and_exchanges(engine) -> None:
    from mpi4py import MPI

    # Rank 0 draws and the others follow, so that all play the same: a failure is every rank's.
    played = 0

    @seed(1)
    @settings(
        max_examples=60,
        deadline=None,
        database=None,
        phases=(Phase.generate,),
        suppress_health_check=list(HealthCheck),
    )
    @given(sequence=sequences, kind=st.integers(0, len(GRIDS) - 1))
    def play(sequence, kind) -> None:
        nonlocal played
        sequence, kind = MPI.COMM_WORLD.bcast((sequence, kind))
        Run(engine, *GRIDS[kind], "written").play(sequence)
        played += 1

    play()
    assert played >= 60
