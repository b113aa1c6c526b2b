"""Copies that change the layout: `from_array` against the peers' ways to the same result."""

from __future__ import annotations

from collections.abc import Iterator
from types import ModuleType
from typing import Any

import numpy as np

from gridbuf_benchmarks.case import Case, Entry, Work

__all__ = ["CASES"]

_NOTE = (
    "A new array of the given layout from one in C order, allocation included. gridbuf and PyTorch copy with their "
    "threads, the others with one."
)
_GT4PY_PRESETS: dict[tuple[int, ...], str] = {
    (0, 1, 2): "numpy",
    (2, 1, 0): "gt:cpu_ifirst",
    (1, 2, 0): "dace:cpu",
}
"""GT4Py chooses layouts by preset; those without one it cannot do."""


def _entries(extent: int, layout: tuple[int, ...]) -> Iterator[Entry]:
    """Each library's way: NumPy and PyTorch copy a permuted view and permute the result back."""
    by_rank = tuple(sorted(range(len(layout)), key=lambda dim: layout[dim]))

    def source() -> np.ndarray[Any, np.dtype[np.float64]]:
        return np.arange(float(extent**3)).reshape((extent,) * 3)

    def gridbuf(module: ModuleType) -> dict[str, Any]:
        return {"from_array": module.from_array, "a": source(), "layout": layout}

    def numpy(_: ModuleType) -> dict[str, Any]:
        return {"array": np.array, "a": source(), "by_rank": by_rank, "layout": layout}

    def torch(module: ModuleType) -> dict[str, Any]:
        # clone is what `contiguous` does for a permuted tensor, and copies one that is contiguous already.
        fixed = {"t": module.from_numpy(source()), "memory_format": module.contiguous_format}
        return {**fixed, "by_rank": by_rank, "layout": layout}

    def gt4py(module: ModuleType) -> dict[str, Any]:
        return {"from_array": module.from_array, "a": source(), "preset": _GT4PY_PRESETS[layout]}

    yield Entry("gridbuf", "from_array(a, layout=layout)", gridbuf)
    yield Entry("numpy", "array(a.transpose(by_rank), order='C').transpose(layout)", numpy)
    yield Entry(
        "torch", "t.permute(by_rank).clone(memory_format=memory_format).permute(layout)", torch
    )
    if layout in _GT4PY_PRESETS:
        yield Entry("gt4py", "from_array(a, backend=preset)", gt4py)


def _cases() -> Iterator[Case]:
    for extent, quick in ((128, True), (256, False)):
        for layout in ((0, 1, 2), (1, 0, 2), (0, 2, 1), (2, 1, 0), (2, 0, 1), (1, 2, 0)):
            name = "".join(map(str, layout))
            yield Case(
                id=f"from_array/{extent}/{name}",
                title=f"from_array {extent}³ to {layout}",
                note=_NOTE,
                work=Work(
                    (extent,) * 3,
                    values="arange",
                    layout=layout,
                    bytes_moved=2 * 8 * extent**3,
                ),
                entries=tuple(_entries(extent, layout)),
                quick=quick,
            )


CASES: tuple[Case, ...] = tuple(_cases())
