"""All cases, in the order in which they are reported."""

from __future__ import annotations

from collections.abc import Sequence
from fnmatch import fnmatchcase

from gridbuf_benchmarks.case import Case
from gridbuf_benchmarks.cases import (
    allocation,
    arithmetic,
    calls,
    casts,
    copies,
    exchange,
    fills,
    from_array,
    halos,
    sizes,
    stencils,
    storages,
    tiny,
)

__all__ = ["ALL_CASES", "CHAPTERS", "named", "select"]

ALL_CASES: tuple[Case, ...] = (
    *allocation.CASES,
    *exchange.CASES,
    *arithmetic.CASES,
    *storages.CASES,
    *calls.CASES,
    *stencils.CASES,
    *halos.CASES,
    *from_array.CASES,
    *tiny.CASES,
    *copies.CASES,
    *casts.CASES,
    *fills.CASES,
    *sizes.CASES,
)


CHAPTERS: tuple[str, ...] = tuple(dict.fromkeys(case.chapter for case in ALL_CASES))
"""The first parts of the ids, in their order: what `--only` chooses from."""


def named(id: str) -> Case:
    """The case of this id, for a process that was started to measure it."""
    (case,) = [case for case in ALL_CASES if case.id == id]
    return case


def select(filters: list[str], *, quick: bool, only: Sequence[str] = ()) -> list[Case]:
    """The cases of the chapters `only` (all if empty) that a filter selects (all without filters).

    A filter selects ids that contain it, or match it as a shell pattern.
    """
    return [
        case
        for case in ALL_CASES
        if (case.quick or not quick)
        and (not only or case.chapter in only)
        and (not filters or any(text in case.id or fnmatchcase(case.id, text) for text in filters))
    ]
