"""Arithmetic on storages, which pairs dimensions by name, against NumPy's on plain arrays of the same layout."""

from __future__ import annotations

from collections.abc import Iterator
from types import ModuleType
from typing import Any

import numpy as np

from gridbuf_benchmarks.case import Case, Entry, Work

__all__ = ["CASES"]

_NOTE = (
    "A new array with the result, allocation included. The operands of both lie alike; NumPy is told by hand where the "
    "axes of extent 1 go. Both add with the same loop of NumPy's: what differs is finding out what the result looks "
    "like, and where its memory comes from."
)

# What is computed: of storages by name, of arrays by position. Every operand is 1 everywhere.
_EXPRESSIONS: dict[str, tuple[str, str, float]] = {
    "ijk_plus_k": ("ijk + k", "ijk + k", 2.0),
    "ij_times_k": ("ij * k", "ij[:, :, None] * k", 1.0),
    "ijk_plus_ijk": ("ijk + ijk", "ijk + ijk", 2.0),
    "ijk_times_2": ("ijk * 2.0", "ijk * 2.0", 2.0),
    "sum_k": ("add.reduce(ijk, axis='K')", "add.reduce(ijk, axis=2)", 0.0),
}


def _entries(extent: int, name: str) -> Iterator[Entry]:
    by_name, by_position, _ = _EXPRESSIONS[name]

    def storages(_: ModuleType) -> dict[str, Any]:
        from gridbuf.storage import ones

        shapes = {"ijk": "IJK", "ij": "IJ", "k": "K"}
        fields = {key: ones((extent,) * len(dims), dims=dims) for key, dims in shapes.items()}
        return {**fields, "add": np.add}

    def arrays(_: ModuleType) -> dict[str, Any]:
        fields = {
            key: np.ones((extent,) * ndim) for key, ndim in {"ijk": 3, "ij": 2, "k": 1}.items()
        }
        return {**fields, "add": np.add}

    yield Entry("gridbuf", by_name, storages)
    yield Entry("numpy", by_position, arrays)


def _cases() -> Iterator[Case]:
    for extent, quick in ((64, True), (128, True), (256, False)):
        for name, (_, _, value) in _EXPRESSIONS.items():
            reduced = name == "sum_k"
            ndim = 2 if reduced else 3
            yield Case(
                id=f"storage/ufunc/{extent}/{name}",
                title=f"{_EXPRESSIONS[name][0]}, {extent}³",
                note=_NOTE,
                work=Work(
                    (extent,) * ndim,
                    values=float(extent) if reduced else value,
                    layout=tuple(range(ndim)),
                ),
                entries=tuple(_entries(extent, name)),
                quick=quick,
                promises=("ufunc",),
            )


CASES: tuple[Case, ...] = tuple(_cases())
