"""The plot: one dot per case and peer on a logarithmic axis, with a line where both take the same time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import groupby
from pathlib import Path
from typing import Any

from gridbuf_benchmarks.libraries import BASELINE, LIBRARIES

__all__ = ["save"]

_STYLE = {
    # Colours of Okabe and Ito, which readers with any colour vision tell apart; shapes for greyscale print.
    # The third figure moves a dot off its line, so that equal ratios do not hide each other.
    "numpy": ("#0072B2", "o", 0.0),
    "torch": ("#D55E00", "s", -0.2),
    "gt4py": ("#009E73", "D", 0.2),
    "gridbuf_dlpack": ("#CC79A7", "^", 0.0),
}
_GROUP_GAP = 1.4
# Without a date and a program's version in it, an unchanged result gives an unchanged file.
_FORMATS: dict[str, dict[str, Any]] = {
    ".png": {"dpi": 96, "metadata": {"Software": None}, "pil_kwargs": {"optimize": True}},
    ".svg": {"metadata": {"Date": None}},
}
_GROUP_TITLES = {
    "allocate/small": "Allocation, 4 KiB",
    "allocate/medium": "Allocation, 2.5 MiB",
    "allocate/preset": "Allocation with a preset",
    "allocate/aligned": "Allocation with alignment",
    "allocate/64MiB": "Allocation and first touch, 64 MiB",
    "allocate/256MiB": "Allocation and first touch, 256 MiB",
    "exchange": "Exchange without copying",
    "copy/128": "Layout-changing copy, 16 MiB",
    "copy/256": "Layout-changing copy, 128 MiB",
}


def save(result: Mapping[str, Any], path: Path) -> list[Path]:
    """Draws the result; returns the files written.

    A `path` ending in .png or .svg is that one file; any other is the common stem of both.
    """
    import matplotlib

    matplotlib.use("Agg")  # no display is needed, and none may be asked for
    matplotlib.rcParams.update({"svg.fonttype": "none", "svg.hashsalt": "gridbuf", "font.size": 10})
    figure = _draw(result)
    one = path.suffix in _FORMATS
    files = [path] if one else [path.with_name(path.name + suffix) for suffix in _FORMATS]
    for file in files:
        figure.savefig(file, **_FORMATS[file.suffix])
    return files


def _draw(result: Mapping[str, Any]) -> Any:
    from matplotlib.figure import Figure

    groups = [
        (name, list(cases)) for name, cases in groupby(result["cases"], lambda case: case["group"])
    ]
    lines = len(result["cases"]) + _GROUP_GAP * len(groups)
    figure = Figure(figsize=(9.5, 1.9 + 0.27 * lines), layout="constrained")
    axes = figure.add_subplot()
    labels: list[tuple[float, str]] = []
    y = 0.0
    for name, cases in groups:
        axes.text(
            -0.008,
            y,
            _GROUP_TITLES.get(name, name),
            transform=axes.get_yaxis_transform(),
            ha="right",
            va="center",
            weight="bold",
            fontsize=9.5,
        )
        for case in cases:
            y += 1
            axes.axhline(y, color="#e4e4e4", linewidth=0.8, zorder=0)
            _draw_case(axes, case, y)
            labels.append((y, case["title"]))
        y += _GROUP_GAP
    _finish_axes(axes, labels, y - 0.6)
    _write_header(figure, axes, result)
    return figure


def _draw_case(axes: Any, case: Mapping[str, Any], y: float) -> None:
    """The peers' dots on one line, each with its interquartile range, and the target's mark."""
    for key, ratio in case["ratios"].items():
        colour, marker, offset = _STYLE[key]
        axes.plot(
            [ratio["lower_quartile"], ratio["upper_quartile"]],
            [y + offset] * 2,
            color=colour,
            linewidth=2,
            alpha=0.55,
            solid_capstyle="butt",
            zorder=2,
        )
        axes.plot(
            ratio["median"],
            y + offset,
            marker,
            color=colour,
            markersize=6,
            markeredgecolor="white",
            markeredgewidth=0.6,
            zorder=3,
        )
    if case["target"]:
        colour, *_ = _STYLE[case["target"]["peer"]]
        limit = case["target"]["ratio"]
        axes.plot([limit, limit], [y - 0.42, y + 0.42], color=colour, linewidth=1.8, zorder=2)
        axes.annotate(
            f"target ≤ {limit:g}×",
            (limit, y - 0.42),
            xytext=(0, 2),
            textcoords="offset points",
            ha="center",
            va="bottom",
            fontsize=8,
            color=colour,
        )


def _finish_axes(axes: Any, labels: Sequence[tuple[float, str]], bottom: float) -> None:
    top = -1.9
    axes.set_xscale("log")
    low, high = axes.get_xlim()
    # One decade each side at least, so that a set of near-equal libraries does not look like a race.
    axes.set_xlim(min(low, 0.1), max(high, 10.0))
    axes.set_ylim(bottom, top)
    axes.axvspan(axes.get_xlim()[0], 1.0, color="#009E73", alpha=0.045, zorder=0, linewidth=0)
    axes.axvline(1.0, color="#333333", linewidth=1.2, zorder=1)
    for text, place, side in (
        ("← gridbuf is faster", -7, "right"),
        ("gridbuf is slower →", 7, "left"),
    ):
        axes.annotate(
            text,
            (1.0, -1.1),
            xytext=(place, 0),
            textcoords="offset points",
            ha=side,
            va="center",
            fontsize=9.5,
            style="italic",
            color="#333333",
        )
    axes.set_yticks([y for y, _ in labels], [label for _, label in labels])
    axes.tick_params(axis="y", length=0)
    axes.xaxis.set_major_formatter(lambda value, _: _tick(value))
    axes.tick_params(axis="x", which="both", top=True, labeltop=True)
    axes.tick_params(axis="x", which="minor", labelbottom=False, labeltop=False)
    axes.set_xlabel("time of gridbuf ÷ time of the peer, logarithmic")
    for side in ("left", "right", "top"):
        axes.spines[side].set_visible(False)


def _tick(ratio: float) -> str:
    """'1/10' is read faster than '0.1' where the question is who wins."""
    return f"{ratio:g}×" if ratio >= 1 else f"1/{1 / ratio:.0f}"


def _write_header(figure: Any, axes: Any, result: Mapping[str, Any]) -> None:
    from matplotlib.lines import Line2D

    present = {key for case in result["cases"] for key in case["ratios"]}
    handles = [
        Line2D(
            [],
            [],
            color=colour,
            marker=marker,
            linewidth=2,
            markersize=6.5,
            markeredgecolor="white",
            label=f"÷ {LIBRARIES[key].title} {result['libraries'][key]['version']}",
        )
        for key, (colour, marker, _) in _STYLE.items()
        if key in present
    ]
    facts = result["machine"]
    own = result["libraries"][BASELINE]
    figure.suptitle(
        f"{own['title']} {own['version']} against the libraries its users have today",
        weight="bold",
        fontsize=12.5,
    )
    axes.set_title(
        f"{facts['cpu_model']} ({facts['cpu_family']}), {facts['cores_usable']} cores · Linux {facts['kernel']} · "
        f"huge pages {facts['huge_pages']} · Python {facts['python']}\n"
        "dot: median of the per-round ratios · bar: interquartile range",
        fontsize=8.5,
        color="#555555",
        pad=12,
    )
    figure.legend(
        handles=handles, loc="outside lower center", ncols=len(handles), frameon=False, fontsize=9.5
    )
