"""All cases, in the order in which they are reported."""

from __future__ import annotations

from collections.abc import Sequence
from fnmatch import fnmatchcase

from gridbuf_benchmarks.case import Case
from gridbuf_benchmarks.cases import allocation, copies, exchange, fills, halos, stencils

CHAPTERS = {
    "allocate": "Allocation",
    "exchange": "Exchange",
    "storage": "Storages",
    "call": "Calls of stencils",
    "stencil": "Compiled stencils",
    "halo": "Halos over ranks",
    "from_array": "New arrays in another layout",
    "tiny": "Copies of a few elements",
    "cache": "Copies in cache, from C",
    "copy": "Copies between layouts",
    "grid": "Copies at grid sizes",
    "cast": "Copies that convert",
    "fill": "Fills",
    "sizes": "Copies and fills by size",
}
"""The first parts of the ids, in their order, with their titles: what `--only` chooses from."""

_FOUND = [
    case
    for module in (allocation, exchange, stencils, halos, copies, fills)
    for case in module.CASES
]
_GROUPS = [*dict.fromkeys(case.group for case in _FOUND)]
ALL_CASES: tuple[Case, ...] = tuple(
    sorted(_FOUND, key=lambda case: ([*CHAPTERS].index(case.chapter), _GROUPS.index(case.group)))
)


def named(id: str) -> Case:
    """The case of this id, for a process that was started to measure it."""
    (case,) = [case for case in ALL_CASES if case.id == id]
    return case


def matches(id: str, patterns: Sequence[str]) -> bool:
    """Whether the id contains one of the texts, or matches it as a shell pattern."""
    return any(text in id or fnmatchcase(id, text) for text in patterns)


def select(filters: Sequence[str], *, quick: bool, only: Sequence[str] = ()) -> list[Case]:
    """The cases of the chapters `only` (all if empty) that a filter selects (all without filters).

    A filter selects ids that contain it, or match it as a shell pattern.
    """
    return [
        case
        for case in ALL_CASES
        if (case.quick or not quick)
        and (not only or case.chapter in only)
        and (not filters or matches(case.id, filters))
    ]
