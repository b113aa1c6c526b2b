"""All cases, in the order in which they are reported."""

from __future__ import annotations

from fnmatch import fnmatchcase

from gridbuf_benchmarks.case import Case
from gridbuf_benchmarks.cases import allocation, arithmetic, copies, exchange, storages

__all__ = ["ALL_CASES", "select"]

ALL_CASES: tuple[Case, ...] = (
    *allocation.CASES,
    *exchange.CASES,
    *copies.CASES,
    *arithmetic.CASES,
    *storages.CASES,
)


def select(filters: list[str], *, quick: bool) -> list[Case]:
    """The cases whose id contains, or matches as a shell pattern, one of the filters (all without filters)."""
    return [
        case
        for case in ALL_CASES
        if (case.quick or not quick)
        and (not filters or any(text in case.id or fnmatchcase(case.id, text) for text in filters))
    ]
