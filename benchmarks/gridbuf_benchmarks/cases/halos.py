"""Halo exchange on two ranks: the engines of gridbuf, GHEX called directly, and mpi4py as users write it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from types import ModuleType
from typing import Any, Literal

import numpy as np

from gridbuf_benchmarks.case import Case, Entry, Work

_HALO = 3
_HALOS = ((_HALO, _HALO), (0, 0), (0, 0))
_VALUE = 2.5
_RANKS = 2
_NOTE = (
    "Two ranks on this machine, the first dimension cut and periodic: two messages from each to the other. The time is that of the "
    "slower rank. mpi4py alone is written by hand: sends and receives of what is contiguous, copies to and from buffers where it "
    "is not. It knows nothing of corners, other ranks' failures or the fields; GHEX called directly nothing of storages."
)


class _Setting:
    """One decomposition and its fields, for each way to exchange them."""

    def __init__(
        self,
        points: tuple[int, int, int],
        layout: tuple[int, ...],
        count: int,
        *,
        shared: bool = False,
    ) -> None:
        import gridbuf.mpi
        import gridbuf.storage

        whole = (points[0] * _RANKS, *points[1:])
        self.grid = gridbuf.mpi.Decomposition({"I": whole[0]}, periodic="I", shared=shared)
        shape = self.grid.local_shape(whole, halo=_HALOS)
        self.fields = [
            gridbuf.storage.zeros(shape, halo=_HALOS, layout=layout) for _ in range(count)
        ]
        for field in self.fields:
            field.domain_view.fill(_VALUE)
        self.arrays = [field.to_numpy() for field in self.fields]


def _through_gridbuf(engine: Literal["mpi4py"] | None, setting: _Setting) -> dict[str, Any]:
    import gridbuf.mpi

    exchange = gridbuf.mpi.HaloExchange(setting.grid, *setting.fields, engine=engine)
    return {"exchange": exchange, "fields": setting.fields, "u": setting.arrays[0]}


def _through_ghex(setting: _Setting) -> dict[str, Any]:
    from gridbuf.mpi._libraries import ghex_module, mpi_module

    MPI, regular = mpi_module(), ghex_module("structured.regular")  # noqa: N806
    sets = ghex_module("structured.cartesian_sets")
    grid, array = setting.grid, setting.arrays[0]
    start, inner = grid.starts["I"], [sets.UnitRange(0, n) for n in array.shape[1:]]
    own = sets.ProductSet(sets.UnitRange(start, start + grid.local_extents["I"]), *inner)
    whole = sets.ProductSet(sets.UnitRange(0, grid.extents["I"]), *inner)
    generator = regular.HaloGenerator(whole, _HALOS, (True, False, False))
    threads = MPI.Query_thread() == MPI.THREAD_MULTIPLE
    context = ghex_module("context").make_context(grid.comm, threads)
    domain = regular.DomainDescriptor(grid.rank, own)
    pattern = regular.make_pattern(context, generator, [domain])
    described = [
        pattern(regular.make_field_descriptor(domain, a, (_HALO, 0, 0), a.shape))
        for a in setting.arrays
    ]
    co = regular.make_communication_object(context)
    # GHEX keeps neither the pattern nor the context for its descriptions.
    return {"co": co, "described": described, "u": array, "kept": (context, pattern)}


def _through_mpi4py(setting: _Setting) -> dict[str, Any]:
    from gridbuf.mpi._libraries import mpi_module

    request = mpi_module().Request
    comm, other = setting.grid.comm, 1 - setting.grid.rank
    points = setting.grid.local_extents["I"]
    # What is sent up and down, and received from below and above.
    boxes = [
        (a[points : points + _HALO], a[_HALO : 2 * _HALO], a[:_HALO], a[-_HALO:])
        for a in setting.arrays
    ]
    buffers = [
        [b if b.flags.c_contiguous else np.empty(b.shape, b.dtype) for b in four] for four in boxes
    ]

    def copy(targets: Any, sources: Any) -> None:
        for target, source in zip(targets, sources, strict=True):
            if target is not source:
                target[...] = source

    def swap() -> None:
        requests = []
        for number, (_, _, below, above) in enumerate(buffers):
            requests.append(comm.Irecv(below, other, 2 * number))
            requests.append(comm.Irecv(above, other, 2 * number + 1))
        for number, (four, packed) in enumerate(zip(boxes, buffers, strict=True)):
            copy(packed[:2], four[:2])
            requests.append(comm.Isend(packed[0], other, 2 * number))
            requests.append(comm.Isend(packed[1], other, 2 * number + 1))
        request.Waitall(requests)
        for four, packed in zip(boxes, buffers, strict=True):
            copy(four[2:], packed[2:])

    return {"swap": swap, "u": setting.arrays[0]}


def _cases() -> Iterator[Case]:
    small, middle, large = (8, 8, 8), (64, 64, 40), (256, 256, 80)
    k_first, i_first = (0, 1, 2), (2, 1, 0)
    for name, points, layout, count, quick in (
        ("8x8x8", small, k_first, 1, True),
        ("64x64x40", middle, k_first, 1, False),
        ("64x64x40/ifirst", middle, i_first, 1, False),
        ("64x64x40/5-fields", middle, i_first, 5, True),
        ("256x256x80", large, k_first, 1, False),
        ("256x256x80/ifirst", large, i_first, 1, False),
    ):

        def entry(
            library: str,
            statement: str,
            made: Callable[[_Setting], dict[str, Any]],
            setting: Callable[..., _Setting] = partial(_Setting, points, layout, count),
        ) -> Entry:
            def names(_: ModuleType) -> dict[str, Any]:
                return made(setting(shared=library == "gridbuf_shared"))

            return Entry(library, statement, names, result="u")

        first = "K first" if layout == k_first else "I first"
        fields = f", {count} fields" if count > 1 else ""
        yield Case(
            id=f"halo/{name}",
            title=f"{' × '.join(map(str, points))}, {first}{fields}",
            note=_NOTE,
            work=Work((points[0] + 2 * _HALO, *points[1:]), values=_VALUE),
            entries=(
                entry("gridbuf", "exchange(*fields)", partial(_through_gridbuf, None)),
                entry("gridbuf_mpi4py", "exchange(*fields)", partial(_through_gridbuf, "mpi4py")),
                entry("gridbuf_shared", "exchange(*fields)", partial(_through_gridbuf, None)),
                entry("ghex", "co.exchange(described).wait()", _through_ghex),
                entry("mpi4py", "swap()", _through_mpi4py),
            ),
            quick=quick,
            consumer="mpi4py",
            ranks=_RANKS,
            promises=() if points == small else ("halo-ghex",),
        )


CASES: tuple[Case, ...] = tuple(_cases())
