"""The charts of the page: SVG of one style, as wide as a page of the site (720 pixels)."""

from __future__ import annotations

import io
import re
from collections.abc import Callable, Collection, Mapping, Sequence
from itertools import groupby
from pathlib import Path
from typing import Any

import numpy as np

from gridbuf_benchmarks.cases import CHAPTERS, matches
from gridbuf_benchmarks.libraries import BASELINE, LIBRARIES, MEMORY
from gridbuf_benchmarks.promises import PROMISES

Cases = Sequence[Mapping[str, Any]]

_WIDTH = 7.5  # inches: 720 pixels in a browser
_SETTINGS = {
    # Without a date, and with fixed names, an unchanged result gives an unchanged file.
    "svg.fonttype": "none",
    "svg.hashsalt": "gridbuf",
    "font.family": "sans-serif",
    "font.sans-serif": ["DejaVu Sans"],
    "font.size": 9,
    "figure.constrained_layout.use": True,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.titlesize": 9.5,
    "axes.axisbelow": True,
    "axes.grid": True,
    "grid.color": "#e4e4e4",
    "legend.frameon": False,
}
_STYLE = {
    # Colours of Okabe and Ito, which readers with any colour vision tell apart; shapes for greyscale print.
    # The third figure moves a dot off its line: equal ratios do not hide each other.
    BASELINE: ("#000000", "o", 0.0),
    "numpy": ("#0072B2", "o", 0.0),
    "torch": ("#D55E00", "s", -0.22),
    "hptt": ("#CC79A7", "^", 0.22),
    "gt4py": ("#009E73", "D", 0.0),
    "ghex": ("#E69F00", "P", -0.22),
    "mpi4py": ("#56B4E9", "X", 0.22),
    "memcpy": ("#777777", "v", 0.0),
    MEMORY: ("#777777", "v", 0.22),
}
_TITLES = {MEMORY: "fastest memcpy or memset", "memcpy": "memcpy, 1 thread"}

RATIOS: Mapping[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    "small": (
        ("allocate/*/small", "allocate/small/*", "exchange/*", "storage/[!u]*", "tiny/*"),
        ("numpy",),
    ),
    "large": (
        ("allocate/*MiB/*", "allocate/1GiB*", "from_array/256/*", "cast/*", "fill/[!cu]*"),
        ("numpy", "torch", MEMORY),
    ),
    "stencils": (
        ("call/*", "stencil/*/cached", "stencil/*/large", "stencil/*/odd", "halo/*"),
        ("gt4py", "ghex", "mpi4py"),
    ),
}
"""The charts of ratios: which cases, and the peers shown."""


def names(result: Mapping[str, Any]) -> list[str]:
    """The charts that the result has cases for."""
    return [name for name, (cases, _) in _charts(result["cases"]).items() if cases]


def save(
    result: Mapping[str, Any], folder: Path, only: Collection[str] | None = None
) -> list[Path]:
    """Draws the charts as SVG in the folder, or some of them; returns the files written."""
    import matplotlib as mpl
    from matplotlib.figure import Figure

    folder.mkdir(parents=True, exist_ok=True)
    written = []
    with mpl.rc_context(_SETTINGS):
        for name, (cases, draw) in _charts(result["cases"]).items():
            if cases and (only is None or name in only):
                figure = Figure(figsize=(_WIDTH, _WIDTH))
                draw(figure, cases)
                written.append(folder / f"{name}.svg")
                text = io.StringIO()
                figure.savefig(text, format="svg", metadata={"Date": None})
                written[-1].write_text(_short(text.getvalue()))
    return written


def _short(svg: str) -> str:
    """Without indentation and names of groups; coordinates to a tenth of a point, not a millionth.

    Matplotlib repeats the style of a marker at each point. Here the marker has it.
    """
    styles = dict(re.findall(r'<use xlink:href="#(\w+)"[^>]* style="([^"]*)"/>', svg))
    svg = re.sub(r'(<use [^>]*) style="[^"]*"/>', r"\1/>", svg)
    svg = re.sub(
        r'(<path id="(\w+)" d="[^"]*" style=)"[^"]*"', lambda m: f'{m[1]}"{styles[m[2]]}"', svg
    )
    svg = re.sub(r"\n *", "\n", re.sub(r'<g id="[^"]*"', "<g", svg))
    return re.sub(r"\d+\.\d{3,}", lambda match: f"{float(match[0]):.1f}".removesuffix(".0"), svg)


def _charts(cases: Cases) -> dict[str, tuple[Cases, Callable[[Any, Cases], None]]]:
    def ratios(name: str) -> tuple[Cases, Callable[[Any, Cases], None]]:
        patterns, peers = RATIOS[name]
        found = [
            case
            for case in cases
            if matches(case["id"], patterns) and not {*peers}.isdisjoint(case["ratios"])
        ]
        return found, lambda figure, some: _draw_ratios(figure, some, peers)

    sizes = [case for case in cases if case["group"] in ("sizes/cube", "sizes/fill")]
    return {
        "small": ratios("small"),
        "layouts": (copies_at_grid_sizes(cases), _draw_layouts),
        "sizes": (sizes, _draw_sizes),
        "large": ratios("large"),
        "stencils": ratios("stencils"),
    }


def copies_at_grid_sizes(cases: Cases) -> Cases:
    """The chapter `grid`; of a result without it, copies of 2 and 16 MiB."""
    dense = [
        case
        for case in cases
        if matches(case["id"], ["copy/[48]/*MiB/210", "copy/[48]/*MiB/120", "copy/[48]/*MiB/201"])
    ]
    return [case for case in cases if case["group"].startswith("grid/")] or dense


def _layout(case: Mapping[str, Any]) -> tuple[int, ...]:
    return tuple(case["work"]["layout"])


def _legend(figure: Any, handles: Sequence[Any], rows: float) -> None:
    """Above the axes, outside of them: a legend inside would hide points."""
    figure.set_figheight(rows)
    figure.legend(handles=handles, loc="outside upper left", ncols=2 if len(handles) < 5 else 3)


def _draw_ratios(figure: Any, cases: Cases, peers: Sequence[str]) -> None:
    """A row for each case: a dot at the median, a bar over the middle half of the rounds, a tick at the promise's limit."""
    from matplotlib.lines import Line2D

    axes = figure.add_subplot()
    ticks: dict[float, str] = {}
    drawn: dict[str, Any] = {}
    y = 0.0
    for chapter, some in groupby(cases, lambda case: case["id"].partition("/")[0]):
        place = {"transform": axes.get_yaxis_transform(), "ha": "right", "va": "center"}
        axes.text(-0.01, y, CHAPTERS[chapter], weight="bold", **place)
        for case in some:
            y += 1
            ticks[y] = case["title"]
            for key in (peer for peer in peers if peer in case["ratios"]):
                colour, marker, offset = _STYLE[key]
                ratio = case["ratios"][key]
                ends = ratio["lower_quartile"], ratio["upper_quartile"]
                axes.hlines(y + offset, *ends, colour, linewidth=2.5, alpha=0.5)
                (drawn[key],) = axes.plot(
                    ratio["median"], y + offset, marker, color=colour, markersize=5
                )
                drawn[key].set_label(f"÷ {_title(key)}")
            for promise in (PROMISES.get(one["promise"]) for one in case["targets"]):
                if promise and promise.peer in peers:
                    colour = _STYLE[promise.peer][0]
                    axes.vlines(promise.limit, y - 0.4, y + 0.4, colour, linewidth=1.6)
        y += 1.5
    axes.set(xscale="log", ylim=(y - 0.5, -0.7), xlabel="time of gridbuf ÷ time of the peer")
    axes.set_yticks([*ticks], [*ticks.values()], fontsize=8)
    low, high = axes.get_xlim()
    axes.set_xlim(min(low, 0.3), max(high, 3.0))
    axes.axvspan(axes.get_xlim()[0], 1.0, color="#009E73", alpha=0.06, zorder=0, linewidth=0)
    axes.axvline(1.0, color="#333333", linewidth=1.0, zorder=1)
    subs = (1.0,) if np.ptp(np.log10(axes.get_xlim())) > 2.5 else (1.0, 2.0, 5.0)
    _log_ticks(axes.xaxis, subs)
    limit = Line2D([], [], color="#777777", marker="|", markersize=9, markeredgewidth=1.6)
    limit.set(linestyle="none", label="limit of a promise")
    green = Line2D([], [], color="#009E73", alpha=0.25, linewidth=7, label="gridbuf is faster")
    _legend(figure, [*drawn.values(), _bar(), limit, green], 1.3 + 0.185 * y)


def _draw_layouts(figure: Any, cases: Cases) -> None:
    """A panel for each layout and element type: speed over the size of the array."""
    dtypes = sorted({case["work"]["dtype"] for case in cases}, reverse=True)
    layouts = sorted({_layout(case) for case in cases}, reverse=True)
    panels = figure.subplots(len(layouts), len(dtypes), squeeze=False, sharex=True, sharey=True)
    for axes, (layout, dtype) in zip(panels.flat, [(a, b) for a in layouts for b in dtypes]):
        some = [case for case in cases if (_layout(case), case["work"]["dtype"]) == (layout, dtype)]
        _draw_lines(
            axes,
            some,
            (BASELINE, "numpy", "torch", "hptt", "memcpy"),
            lambda case, ns: case["work"]["bytes_moved"] / ns,
        )
        axes.set_title(f"to layout {layout}, {dtype}")
        if not some:
            axes.text(0.5, 0.5, "not measured", transform=axes.transAxes, ha="center")
    for axes in panels[:, 0]:
        axes.set_ylabel("GB/s")
    sizes = [case["work"]["array_bytes"] / 2**20 for case in cases]
    panels[0, 0].set_xlim(min(sizes) / 1.4, max(sizes) * 1.4)
    _log_ticks(panels[0, 0].xaxis, (1.0, 2.0, 5.0))
    figure.supxlabel("size of the array in MiB", fontsize=9)
    _legend(figure, _handles(panels), 0.9 + 1.75 * len(layouts))


def _draw_sizes(figure: Any, cases: Cases) -> None:
    """Time per byte over the size of the array, where a horizontal line is a cost that grows linearly."""
    titles = {"sizes/cube": "copy into the reversed layout", "sizes/fill": "fill with a value"}
    panels = figure.subplots(1, 2, squeeze=False, sharex=True, sharey=True)
    for axes, (group, title) in zip(panels.flat, titles.items()):
        some = [case for case in cases if case["group"] == group]
        _draw_lines(
            axes,
            some,
            (BASELINE, "numpy", "torch", MEMORY),
            lambda case, ns: ns / case["work"]["array_bytes"],
        )
        axes.set_title(f"{title}, n³ float64")
        axes.xaxis.set_major_locator(_locator(base=16))
        axes.xaxis.set_major_formatter(lambda x, _: _size(x))
    panels[0, 0].set_ylabel("nanoseconds per byte")
    figure.supxlabel("size of the array", fontsize=9)
    _legend(figure, _handles(panels), 3.6)


def _draw_lines(
    axes: Any, cases: Cases, keys: Sequence[str], y: Callable[[Mapping[str, Any], float], float]
) -> None:
    """A line for each contender, with the quartiles as a bar at each point; x is the size in MiB."""
    axes.set(xscale="log", yscale="log")
    for key in keys:
        points = []
        for case in sorted(cases, key=lambda case: int(case["work"]["array_bytes"])):
            library = case["yardstick"] if key == MEMORY else key
            for one in case["contenders"]:
                if one["library"] == library:
                    times = one["nanoseconds"]
                    parts = (times[part] for part in ("median", "lower_quartile", "upper_quartile"))
                    points.append(
                        (case["work"]["array_bytes"] / 2**20, *(y(case, ns) for ns in parts))
                    )
        if points:
            colour, marker, _ = _STYLE[key]
            style = "--" if key in (MEMORY, "memcpy") else "-"
            x, median, one_end, other_end = np.array(points).T
            ends = np.array([one_end, other_end, np.full(len(x), np.nan)]).T.ravel()
            bars = {"linewidth": 1.5, "alpha": 0.4, "solid_capstyle": "butt"}
            axes.plot(np.repeat(x, 3), ends, color=colour, **bars)
            axes.plot(
                x, median, style, marker=marker, markersize=4, color=colour, label=_title(key)
            )
    _log_ticks(axes.yaxis, (1.0, 2.0, 5.0))


def _handles(panels: Any) -> list[Any]:
    """One handle for each label of all panels, and that of the bars."""
    found = [zip(*axes.get_legend_handles_labels()) for axes in panels.flat]
    return [*{label: handle for some in found for handle, label in some}.values(), _bar()]


def _bar() -> Any:
    from matplotlib.lines import Line2D

    return Line2D([], [], color="#777777", linewidth=2.5, alpha=0.5, label="middle half of rounds")


def _locator(base: float = 10.0, subs: Sequence[float] = (1.0,)) -> Any:
    from matplotlib.ticker import LogLocator

    return LogLocator(base=base, subs=subs, numticks=12)


def _log_ticks(axis: Any, subs: Sequence[float]) -> None:
    """Plain numbers instead of powers of ten."""
    from matplotlib.ticker import NullLocator

    axis.set_major_locator(_locator(subs=subs))
    axis.set_major_formatter(lambda value, _: f"{value:g}")
    axis.set_minor_locator(NullLocator())


def _size(mib: float) -> str:
    """A size in the unit in which it is a small number."""
    for unit, scale in (("KiB", 1 / 1024), ("MiB", 1), ("GiB", 1024)):
        if mib < 1024 * scale:
            return f"{mib / scale:g} {unit}"
    return f"{mib / 1024:g} GiB"


def _title(key: str) -> str:
    return _TITLES.get(key) or LIBRARIES[key].title
