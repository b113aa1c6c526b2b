"""The plot of copies: how near each comes to the speed of the memory, by item size and layout.

One panel for each item size, one column of dots for each layout, one mark for each shape and padding. The line at
1 is a copy of as many bytes that minds no layout.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from gridbuf_benchmarks.grid import Grid, grids
from gridbuf_benchmarks.libraries import MEMORY
from gridbuf_benchmarks.plot_ratios import machine_line
from gridbuf_benchmarks.promises import PROMISES

__all__ = ["draw"]

_COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
_MARKERS = "osD^vP"
_LARGE_BYTES = 64 << 20


def draw(result: Mapping[str, Any]) -> Any:
    """The figure; None if the result has no large copies."""
    from matplotlib.figure import Figure

    shown = [
        case
        for case in result["cases"]
        if case["id"].startswith("copy/")
        and MEMORY in case["ratios"]
        and case["work"]["array_bytes"] >= _LARGE_BYTES
    ]
    panels = grids(shown)
    if not panels:
        return None
    figure = Figure(figsize=(10.5, 0.9 + 2.9 * len(panels)), layout="constrained")
    all_axes = figure.subplots(len(panels), 1, squeeze=False)[:, 0]
    for axes, panel in zip(all_axes, panels):
        _draw_panel(axes, panel)
    figure.suptitle(
        "Copies from C order into other layouts, relative to a two-thread memcpy of as many bytes",
        weight="bold",
        fontsize=12.5,
    )
    all_axes[0].text(
        0,
        1.12,
        f"{machine_line(result)} · arrays of 64 MiB and more",
        transform=all_axes[0].transAxes,
        fontsize=8.5,
        color="#555555",
    )
    return figure


def _draw_panel(axes: Any, grid: Grid) -> None:
    offsets = _spread(len(grid.rows))
    for number, ((label, cells), offset) in enumerate(zip(grid.rows, offsets)):
        points = [
            (column + offset, 1 / cell.ratio)
            for column, cell in enumerate(cells)
            if cell is not None
        ]
        axes.plot(
            [x for x, _ in points],
            [y for _, y in points],
            _MARKERS[number % len(_MARKERS)],
            color=_COLOURS[number % len(_COLOURS)],
            markersize=5.5,
            markeredgecolor="white",
            markeredgewidth=0.5,
            linestyle="none",
            label=label,
        )
    axes.axhline(1.0, color="#333333", linewidth=1.2, zorder=1)
    for bound in _bounds(grid):
        axes.axhline(bound, color="#999999", linewidth=1, linestyle=":", zorder=1)
        axes.annotate(
            f"target {bound:g}",
            (1.0, bound),
            xycoords=axes.get_yaxis_transform(),
            xytext=(-3, 2),
            textcoords="offset points",
            ha="right",
            fontsize=8,
            color="#777777",
        )
    axes.set_title(grid.title, loc="left", weight="bold", fontsize=10)
    axes.set_xticks(range(len(grid.columns)), [f"to {name}" for name in grid.columns])
    axes.set_xlim(-0.5, len(grid.columns) - 0.5)
    axes.set_ylim(bottom=0)
    axes.set_ylabel("of memcpy's speed")
    axes.grid(axis="y", color="#e4e4e4", linewidth=0.8)
    axes.set_axisbelow(True)
    axes.legend(loc="center left", bbox_to_anchor=(1.0, 0.5), frameon=False, fontsize=8)
    for side in ("right", "top"):
        axes.spines[side].set_visible(False)


def _spread(count: int) -> Sequence[float]:
    """Places beside each other within a column."""
    return [0.7 * ((number + 0.5) / count - 0.5) for number in range(count)]


def _bounds(grid: Grid) -> list[float]:
    """The targets of this item size."""
    size = grid.title.split()[0]
    keys = [key for key in PROMISES if key == f"copy-{size}" or key.startswith(f"copy-{size}-")]
    return sorted({PROMISES[key].bound for key in keys})
