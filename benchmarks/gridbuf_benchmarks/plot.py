"""The plots of a result: ratios of all kinds, copies relative to the memory, and cost over size."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby
from pathlib import Path
from typing import Any

import numpy as np

from gridbuf_benchmarks.cases import CHAPTERS
from gridbuf_benchmarks.cases.copies import LINES
from gridbuf_benchmarks.libraries import BASELINE, LIBRARIES, MEMORY
from gridbuf_benchmarks.promises import PROMISES, points_of_lines

# Without a date and a program's version in it, an unchanged result gives an unchanged file.
_FORMATS: dict[str, dict[str, Any]] = {
    ".png": {"dpi": 96, "metadata": {"Software": None}, "pil_kwargs": {"optimize": True}},
    ".svg": {"metadata": {"Date": None}},
}
_SETTINGS = {
    "svg.fonttype": "none",
    "svg.hashsalt": "gridbuf",
    "font.size": 10,
    "figure.constrained_layout.use": True,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.titlelocation": "left",
    "axes.titleweight": "bold",
    "axes.titlesize": 10,
    "axes.axisbelow": True,
    "grid.color": "#e4e4e4",
    "legend.frameon": False,
    "legend.fontsize": 8,
    "lines.markeredgewidth": 0.5,
}
_STYLE = {
    # Colours of Okabe and Ito, which readers with any colour vision tell apart; shapes for greyscale print.
    # The third figure moves a dot off its line: equal ratios do not hide each other.
    BASELINE: ("#000000", "o", 0.0),
    "numpy": ("#0072B2", "o", 0.0),
    "torch": ("#D55E00", "s", -0.2),
    "gt4py": ("#009E73", "D", 0.2),
    "gridbuf_dlpack": ("#CC79A7", "^", 0.0),
    "ghex": ("#E69F00", "P", -0.2),
    "mpi4py": ("#56B4E9", "X", 0.0),
    "gridbuf_mpi4py": ("#CC79A7", "v", 0.2),
    MEMORY: ("#555555", "v", 0.1),
}
_LARGE_BYTES = 64 << 20

Cases = Sequence[Mapping[str, Any]]


def names(result: Mapping[str, Any], path: Path) -> dict[str, Path]:
    """The file of each plot that the result has cases for."""
    additions = {"ratios": "", "copies": "-copies", "sizes": "-sizes"}
    return {
        name: path.with_stem(path.stem + addition)
        for name, addition in additions.items()
        if _shown(result, name)
    }


def save(result: Mapping[str, Any], path: Path) -> list[Path]:
    """Draws the result in the format of the path's suffix; returns the files written."""
    import matplotlib as mpl

    mpl.use("Agg")  # without a display
    draw = {"ratios": _draw_ratios, "copies": _draw_copies, "sizes": _draw_sizes}
    files = names(result, path)
    with mpl.rc_context(_SETTINGS):
        for name, file in files.items():
            figure = draw[name](result, _shown(result, name))
            figure.savefig(file, **_FORMATS.get(file.suffix, {}))
    return [*files.values()]


def _shown(result: Mapping[str, Any], name: str) -> Cases:
    """The cases of a plot."""
    large = [case for case in result["cases"] if case["work"]["array_bytes"] >= _LARGE_BYTES]
    chapters = [(case["id"].partition("/")[0], case) for case in result["cases"]]
    found = {
        "ratios": [case for chapter, case in chapters if chapter not in ("copy", "sizes")],
        "copies": [
            case for _, _, rows in grids(large) for row in rows.values() for case in row.values()
        ],
        "sizes": [case for chapter, case in chapters if chapter == "sizes"],
    }
    return found[name]


Grid = tuple[int, list[tuple[int, ...]], dict[str, dict[tuple[int, ...], Mapping[str, Any]]]]
"""Item size in bytes, the layouts in their order, and of each row (its label) the case of each layout."""


def grids(cases: Cases) -> Iterator[Grid]:
    """The 3-d copies that have a ratio to the memory: shapes × layouts, a grid for each item size."""
    by_size: dict[int, dict[str, dict[tuple[int, ...], Mapping[str, Any]]]] = {}
    for case in cases:
        work = case["work"]
        if case["id"].startswith("copy/") and len(work["shape"]) == 3 and MEMORY in case["ratios"]:
            words = ["×".join(map(str, work["shape"]))]
            if work["target"]["rows"] == "lines":
                dense = work["source"]["rows"] == "dense"
                words.append("padded" if dense else "padded on both sides")
            if work["target"]["offset_bytes"]:
                words.append(f"{work['target']['offset_bytes']} bytes off a line")
            rows = by_size.setdefault(int(case["id"].split("/")[1]), {})
            rows.setdefault(", ".join(words), {})[tuple(work["layout"])] = case
    for size, rows in sorted(by_size.items()):
        yield size, sorted({layout for row in rows.values() for layout in row}), rows


def _figure(result: Mapping[str, Any], title: str, panels: int, height: float) -> tuple[Any, Any]:
    """A figure with one column of axes; the machine is below its title."""
    from matplotlib.figure import Figure

    machine = result["machine"]
    where = (
        f"{machine['cpu_model']} ({machine['cpu_family']}), {machine['cores_usable']} cores · "
        f"GPU: {', '.join(machine['gpu_models']) or 'none'} · Linux {machine['kernel']} · "
        f"huge pages {machine['huge_pages']} · Python {machine['python']}"
    )
    figure = Figure(figsize=(10.5, height))
    figure.suptitle(f"{title}\n{where}", fontsize=10)
    return figure, figure.subplots(panels, 1, squeeze=False)[:, 0]


def _draw_ratios(result: Mapping[str, Any], cases: Cases) -> Any:
    """One dot per case and peer on a logarithmic axis, with a line where both take the same time."""
    groups = [(name, [*some]) for name, some in groupby(cases, lambda case: case["group"])]
    own = result["libraries"][BASELINE]
    title = f"{own['title']} {own['version']} against the libraries its users have today"
    height = 2.2 + 0.27 * (len(cases) + 1.4 * len(groups))
    figure, (axes,) = _figure(result, title, 1, height)
    places: dict[float, str] = {}
    series: dict[str, list[tuple[float, ...]]] = {}
    y = 0.0
    for name, some in groups:
        chapter, _, rest = name.partition("/")
        text = f"{CHAPTERS.get(chapter, chapter)}{', ' if rest else ''}{rest}"
        place = {"transform": axes.get_yaxis_transform(), "ha": "right", "va": "center"}
        axes.text(-0.008, y, text, weight="bold", **place)
        for case in some:
            y += 1
            places[y] = case["title"]
            for key, ratio in case["ratios"].items():
                quartiles = (ratio[part] for part in ("lower_quartile", "median", "upper_quartile"))
                series.setdefault(key, []).append((y + _STYLE[key][2], *quartiles))
            for promise in (PROMISES[one["promise"]] for one in case["targets"]):
                if promise.id != "copy-numpy":  # next to the line where both take the same time
                    colour = _STYLE[promise.peer][0]
                    axes.vlines(promise.limit, y - 0.42, y + 0.42, colour, linewidth=1.8)
        y += 1.4
    for key, points in series.items():
        colour, marker, _ = _STYLE[key]
        at, lower, median, upper = np.array(points).T
        version = "" if key == MEMORY else f" {result['libraries'][key]['version']}"
        label = f"÷ {_title(key)}{version}"
        axes.hlines(at, lower, upper, colour, linewidth=2, alpha=0.55)
        axes.plot(median, at, marker, color=colour, markeredgecolor="white", label=label)
    axes.set(xscale="log", ylim=(y, -1.9), yticks=[*places])
    axes.set_yticklabels([*places.values()])
    # One decade on each side at least: near-equal libraries do not look like a race.
    low, high = axes.get_xlim()
    axes.set_xlim(min(low, 0.1), max(high, 10.0))
    axes.axvspan(axes.get_xlim()[0], 1.0, color="#009E73", alpha=0.045, zorder=0, linewidth=0)
    axes.axvline(1.0, color="#333333", linewidth=1.2, zorder=1)
    for text, side in (("← gridbuf is faster  ", "right"), ("  gridbuf is slower →", "left")):
        axes.text(1.0, -1.1, text, ha=side, va="center", style="italic", color="#333333")
    axes.grid(axis="y")
    axes.tick_params(axis="x", which="both", top=True, labeltop=True)
    axes.xaxis.set_major_formatter(lambda x, _: f"{x:g}×" if x >= 1 else f"1/{1 / x:.0f}")
    axes.xaxis.set_minor_formatter(lambda x, _: "")
    axes.set_xlabel(
        "time of gridbuf ÷ time of the peer\n"
        "dot: median of the per-round ratios, bar: interquartile range, line: target"
    )
    figure.legend(loc="outside lower center", ncols=4, fontsize=9.5)
    return figure


def _draw_copies(result: Mapping[str, Any], cases: Cases) -> Any:
    """A panel for each item size, a column of dots for each layout, a mark for each shape and padding."""
    panels = [*grids(cases)]
    title = "Copies from C order into other layouts, arrays of 64 MiB and more"
    figure, all_axes = _figure(result, title, len(panels), 0.9 + 2.9 * len(panels))
    styles = [*_STYLE.values()][1:-1]  # without gridbuf and the memory
    for axes, (size, layouts, rows) in zip(all_axes, panels):
        for number, (label, row) in enumerate(rows.items()):
            colour = styles[number % len(styles)][0]
            marker = styles[(number + number // len(styles)) % len(styles)][1]
            offset = 0.7 * ((number + 0.5) / len(rows) - 0.5)
            axes.plot(
                [layouts.index(layout) + offset for layout in row],
                [1 / case["ratios"][MEMORY]["median"] for case in row.values()],
                marker,
                color=colour,
                markeredgecolor="white",
                label=label,
            )
        axes.axhline(1.0, color="#333333", linewidth=1.2, zorder=1)
        for key, promise in PROMISES.items():
            if key == f"copy-{size}" or key.startswith(f"copy-{size}-"):
                axes.axhline(promise.bound, color="#999999", linewidth=1, linestyle=":", zorder=1)
                place = {"transform": axes.get_yaxis_transform(), "ha": "right"}
                axes.text(1.0, promise.bound, f"target {promise.bound:g}", fontsize=8, **place)
        axes.set_title(f"{size} byte{'s' if size > 1 else ''} an item")
        axes.set_xticks(range(len(layouts)), [f"to {layout}" for layout in layouts])
        axes.set_ylim(bottom=0)
        axes.set_ylabel("of memcpy's speed")
        axes.grid(axis="y")
        axes.legend(loc="center left", bbox_to_anchor=(1.0, 0.5))
    return figure


def _draw_sizes(result: Mapping[str, Any], cases: Cases) -> Any:
    """Time per byte over the size of the array, where a horizontal line is a cost that grows linearly."""
    points = [*points_of_lines(cases)]
    lines = [*dict.fromkeys(line for line, *_ in points)]
    title = "Time per byte of the array, by size"
    figure, all_axes = _figure(result, title, len(lines), 0.9 + 3.1 * len(lines))
    for axes, line in zip(all_axes, lines):
        for key in dict.fromkeys(key for name, key, *_ in points if name == line):
            colour, marker, _ = _STYLE[key]
            found = [(x / 2**20, y) for name, one, x, y in points if (name, one) == (line, key)]
            style = "--" if key == MEMORY else "-"
            width = 2 if key == BASELINE else 1.2
            axes.plot(
                *zip(*found), style, marker=marker, color=colour, linewidth=width, label=_title(key)
            )
        axes.set_title(LINES[line])
        axes.set_ylabel("ns per byte")
        axes.set_xscale("log", base=2)
        axes.set_yscale("log")
        axes.xaxis.set_major_formatter(lambda x, _: f"{x:g} MiB")
        axes.yaxis.set_major_formatter(lambda y, _: f"{y:g}")
        axes.grid()
        axes.legend(loc="center left", bbox_to_anchor=(1.0, 0.5))
    return figure


def _title(key: str) -> str:
    return "memcpy or memset, 2 threads" if key == MEMORY else LIBRARIES[key].title
