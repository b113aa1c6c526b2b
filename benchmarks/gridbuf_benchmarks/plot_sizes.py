"""The plot of sizes: time per byte over the size of the array, where a horizontal line is a cost that grows linearly."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from gridbuf_benchmarks.cases.sizes import LINES
from gridbuf_benchmarks.libraries import BASELINE, LIBRARIES, MEMORY
from gridbuf_benchmarks.plot_ratios import STYLE, machine_line
from gridbuf_benchmarks.promises import points_of_lines

__all__ = ["draw"]

_OWN = ("#000000", "o")


def draw(result: Mapping[str, Any]) -> Any:
    """The figure; None if the result has no sizes."""
    from matplotlib.figure import Figure

    lines: dict[str, dict[str, list[tuple[int, float]]]] = {}
    for line, library, size_bytes, per_byte in points_of_lines(result["cases"]):
        lines.setdefault(line, {}).setdefault(library, []).append((size_bytes, per_byte))
    if not lines:
        return None
    figure = Figure(figsize=(10.5, 0.9 + 3.1 * len(lines)), layout="constrained")
    all_axes = figure.subplots(len(lines), 1, squeeze=False)[:, 0]
    for axes, (line, contenders) in zip(all_axes, lines.items()):
        _draw_panel(axes, LINES[line], contenders)
    figure.suptitle("Time per byte of the array, by size", weight="bold", fontsize=12.5)
    all_axes[-1].set_xlabel(f"size of the array\n{machine_line(result)}", fontsize=9)
    return figure


def _draw_panel(axes: Any, title: str, contenders: Mapping[str, list[tuple[int, float]]]) -> None:
    for library, points in contenders.items():
        colour, marker = _OWN if library == BASELINE else STYLE[library][:2]
        axes.plot(
            [size for size, _ in points],
            [per_byte for _, per_byte in points],
            color=colour,
            marker=marker,
            markersize=5,
            linewidth=2 if library == BASELINE else 1.2,
            linestyle="--" if library == MEMORY else "-",
            label="memcpy or memset, 2 threads" if library == MEMORY else LIBRARIES[library].title,
        )
    axes.set_xscale("log", base=2)
    axes.set_yscale("log")
    axes.set_title(title, loc="left", weight="bold", fontsize=10)
    axes.set_ylabel("ns per byte")
    sizes = sorted({size for points in contenders.values() for size, _ in points})
    ticks = [1 << n for n in range(18, 34) if sizes[0] / 2 <= 1 << n <= sizes[-1] * 2]
    axes.set_xticks(ticks, [_size(tick) for tick in ticks], fontsize=8)
    axes.minorticks_off()
    axes.yaxis.set_major_formatter(lambda value, _: f"{value:g}")
    axes.grid(color="#e4e4e4", linewidth=0.8)
    axes.legend(loc="center left", bbox_to_anchor=(1.0, 0.5), frameon=False, fontsize=8)
    for side in ("right", "top"):
        axes.spines[side].set_visible(False)


def _size(size_bytes: int) -> str:
    for unit, shift in (("GiB", 30), ("MiB", 20), ("KiB", 10)):
        if size_bytes >= 1 << shift:
            return f"{size_bytes >> shift} {unit}"
    return f"{size_bytes} B"
