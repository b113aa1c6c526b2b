"""The same copy at sizes from 1 MiB to 4 GiB, to see whether its cost grows linearly."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from gridbuf_benchmarks.case import Case, Work
from gridbuf_benchmarks.cases.copies import copy_case
from gridbuf_benchmarks.cases.shared import fill_entries, fill_yardsticks, needed_bytes
from gridbuf_benchmarks.placement import Placement

__all__ = ["CASES", "LINES"]

_NOTE = (
    "The same work at growing sizes; sizes for which the memory does not suffice are left out. Above 512 MiB gridbuf "
    "is measured beside the memory alone."
)
_PEERS_TO_BYTES = 512 << 20

LINES = {
    "sizes/cube": "n³ float64 into the reversed layout, rows of whole lines",
    "sizes/pow2": "powers of two, float64, into the reversed layout",
    "sizes/fill": "n³ float64 filled with a value",
}

_CUBES = {1: 48, 2: 64, 4: 80, 8: 104, 16: 136, 32: 168, 64: 200, 128: 248, 256: 328, 512: 408}
_CUBES |= {1024: 520, 2048: 648, 4096: 808}
_POWERS = {1 << n: tuple(1 << (17 + n + i) // 3 for i in range(3)) for n in range(13)}


def _extents() -> Iterator[tuple[str, int, tuple[int, ...]]]:
    for mebibytes, extent in _CUBES.items():
        yield "sizes/cube", mebibytes, (extent,) * 3
    for mebibytes, extents in _POWERS.items():
        yield "sizes/pow2", mebibytes, extents


def _without_peers(case: Case) -> Case:
    """NumPy would take half a minute for a copy of 4 GiB."""
    if case.work.array_bytes <= _PEERS_TO_BYTES:
        return case
    return replace(case, entries=case.entries[:1])


def _copies() -> Iterator[Case]:
    for line, mebibytes, shape in _extents():
        yield _without_peers(
            copy_case(
                f"{line}/{mebibytes}MiB",
                shape,
                Placement("float64", (2, 1, 0)),
                promises=(),
                quick=line == "sizes/cube" and mebibytes in (1, 16),
                note=_NOTE,
            )
        )


def _fills() -> Iterator[Case]:
    for mebibytes, extent in _CUBES.items():
        work = Work(
            (extent,) * 3,
            values=1.5,
            bytes_moved=8 * extent**3,
            target=Placement("float64", (0, 1, 2)),
        )
        yield _without_peers(
            Case(
                id=f"sizes/fill/{mebibytes}MiB",
                title=f"fill {extent}³ float64",
                note=_NOTE,
                work=work,
                entries=fill_entries(work),
                yardsticks=fill_yardsticks(work.array_bytes),
                quick=False,
                memory_bytes=needed_bytes(work),
            )
        )


CASES: tuple[Case, ...] = (*_copies(), *_fills())
