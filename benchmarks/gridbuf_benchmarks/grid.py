"""The matrix of copies as grids: a row for each shape, a column for each layout, one grid for each item size."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from gridbuf_benchmarks.libraries import MEMORY

__all__ = ["Cell", "Grid", "grids", "row_label"]


@dataclass(frozen=True)
class Cell:
    """gridbuf's time divided by the memory's, and whether that is what is promised; None where nothing is."""

    id: str
    ratio: float
    met: bool | None


@dataclass(frozen=True)
class Grid:
    """Copies of one item size and one number of dimensions, the columns in the order of the layouts."""

    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, tuple[Cell | None, ...]], ...]


def grids(cases: Sequence[Mapping[str, Any]]) -> list[Grid]:
    """The grids of those cases that are 3-d copies of one type; empty if there are none."""
    copies = [case for case in cases if case["id"].startswith("copy/") and _is_3d(case)]
    sizes = sorted({_itemsize(case) for case in copies})
    return [_grid(size, [case for case in copies if _itemsize(case) == size]) for size in sizes]


def _is_3d(case: Mapping[str, Any]) -> bool:
    return len(case["work"]["shape"]) == 3


def _itemsize(case: Mapping[str, Any]) -> int:
    return int(case["id"].split("/")[1])


def _grid(size: int, cases: Sequence[Mapping[str, Any]]) -> Grid:
    layouts = sorted({tuple(case["work"]["layout"]) for case in cases})
    by_row: dict[str, dict[tuple[int, ...], Cell]] = {}
    for case in cases:
        label = row_label(case)
        by_row.setdefault(label, {})[tuple(case["work"]["layout"])] = _cell(case)
    return Grid(
        f"{size} byte{'s' if size > 1 else ''} an item",
        tuple(f"({', '.join(map(str, layout))})" for layout in layouts),
        tuple((label, tuple(map(row.get, layouts))) for label, row in by_row.items()),
    )


def _cell(case: Mapping[str, Any]) -> Cell:
    judged = [target["met"] for target in case["targets"] if target["peer"] == MEMORY]
    return Cell(case["id"], case["ratios"][MEMORY]["median"], all(judged) if judged else None)


def row_label(case: Mapping[str, Any]) -> str:
    """The extents and what is special about where source and target lie."""
    work = case["work"]
    words = ["×".join(map(str, work["shape"]))]
    if work["target"]["rows"] == "lines":
        words.append("padded" if work["source"]["rows"] == "dense" else "padded on both sides")
    if work["target"]["offset_bytes"]:
        words.append(f"{work['target']['offset_bytes']} bytes off a line")
    return ", ".join(words)
