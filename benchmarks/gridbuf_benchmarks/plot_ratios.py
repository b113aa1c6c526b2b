"""The plot of ratios: one dot per case and peer on a logarithmic axis, with a line where both take the same time.

Copies, casts and sizes have plots of their own; here are the others.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import groupby
from typing import Any

from gridbuf_benchmarks.libraries import BASELINE, LIBRARIES, MEMORY
from gridbuf_benchmarks.promises import PROMISES, Promise

__all__ = ["STYLE", "draw", "machine_line"]

STYLE = {
    # Colours of Okabe and Ito, which readers with any colour vision tell apart; shapes for greyscale print.
    # The third figure moves a dot off its line, so that equal ratios do not hide each other.
    "numpy": ("#0072B2", "o", 0.0),
    "torch": ("#D55E00", "s", -0.2),
    "gt4py": ("#009E73", "D", 0.2),
    "gridbuf_dlpack": ("#CC79A7", "^", 0.0),
    "ghex": ("#E69F00", "P", -0.2),
    "mpi4py": ("#56B4E9", "X", 0.0),
    "gridbuf_mpi4py": ("#CC79A7", "v", 0.2),
    MEMORY: ("#555555", "v", 0.1),
}
_GROUP_GAP = 1.4
_GROUP_TITLES = {
    "allocate/small": "Allocation, 4 KiB",
    "allocate/medium": "Allocation, 2.5 MiB",
    "allocate/preset": "Allocation with a preset",
    "allocate/aligned": "Allocation with alignment",
    "allocate/64MiB": "Allocation and first touch, 64 MiB",
    "allocate/256MiB": "Allocation and first touch, 256 MiB",
    "exchange": "Exchange without copying",
    "allocate/1GiB": "Allocation and a write, 1 GiB",
    "allocate/1GiB-cold": "The same in a fresh process",
    "storage/ufunc/64": "Arithmetic on storages, 2 MiB",
    "storage/ufunc/128": "Arithmetic on storages, 16 MiB",
    "storage/ufunc/256": "Arithmetic on storages, 128 MiB",
    "storage/index": "Views of storages",
    "storage": "Storages without copying",
    "halo": "Halos over two ranks",
    "from_array/128": "A new array in another layout, 16 MiB",
    "from_array/256": "A new array in another layout, 128 MiB",
    "tiny": "Copies of a few elements",
    "cache/4KiB": "Copies in C, 4 KiB",
    "cache/32KiB": "Copies in C, 32 KiB",
    "cache/256KiB": "Copies in C, 256 KiB",
    "cast": "Copies that convert",
    "fill/uint8": "Fills in place, 1 byte an item",
    "fill/float32": "Fills in place, 4 bytes",
    "fill/float64": "Fills in place, 8 bytes",
    "fill/complex128": "Fills in place, 16 bytes",
    "fill/warm": "New arrays, filled",
}
_OTHER_PLOTS = ("copy", "sizes")


def draw(result: Mapping[str, Any]) -> Any:
    """The figure; None if the result has no case for it."""
    from matplotlib.figure import Figure

    shown = [case for case in result["cases"] if case["id"].partition("/")[0] not in _OTHER_PLOTS]
    if not shown:
        return None
    groups = [(name, list(cases)) for name, cases in groupby(shown, lambda case: case["group"])]
    lines = len(shown) + _GROUP_GAP * len(groups)
    figure = Figure(figsize=(9.5, 1.9 + 0.27 * lines), layout="constrained")
    axes = figure.add_subplot()
    labels: list[tuple[float, str]] = []
    y = 0.0
    for name, cases in groups:
        axes.text(
            -0.008,
            y,
            _GROUP_TITLES.get(name, name.replace("/", ", ").capitalize()),
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
    _write_header(figure, axes, result, shown)
    return figure


def machine_line(result: Mapping[str, Any]) -> str:
    """Processor, cores, GPU, system: what stands below the title of every plot."""
    facts = result["machine"]
    return (
        f"{facts['cpu_model']} ({facts['cpu_family']}), {facts['cores_usable']} cores · "
        f"GPU: {', '.join(facts['gpu_models']) or 'none'} · Linux {facts['kernel']} · "
        f"huge pages {facts['huge_pages']} · Python {facts['python']}"
    )


def _draw_case(axes: Any, case: Mapping[str, Any], y: float) -> None:
    """The peers' dots on one line, each with its interquartile range, and the target's mark."""
    for key, ratio in case["ratios"].items():
        colour, marker, offset = STYLE[key]
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
    for target in case["targets"]:
        if target["promise"] == "copy-numpy":
            continue  # just beside the line where both take the same time
        _draw_target(axes, PROMISES[target["promise"]], y)


def _draw_target(axes: Any, promise: Promise, y: float) -> None:
    colour, *_ = STYLE[promise.peer]
    axes.plot([promise.limit] * 2, [y - 0.42, y + 0.42], color=colour, linewidth=1.8, zorder=2)
    axes.annotate(
        f"target ≤ {promise.limit:.3g}×",
        (promise.limit, y - 0.42),
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


def _write_header(
    figure: Any, axes: Any, result: Mapping[str, Any], shown: Sequence[Mapping[str, Any]]
) -> None:
    from matplotlib.lines import Line2D

    present = {key for case in shown for key in case["ratios"]}
    handles = [
        Line2D(
            [],
            [],
            color=colour,
            marker=marker,
            linewidth=2,
            markersize=6.5,
            markeredgecolor="white",
            label=f"÷ {_label(result, key)}",
        )
        for key, (colour, marker, _) in STYLE.items()
        if key in present
    ]
    own = result["libraries"][BASELINE]
    figure.suptitle(
        f"{own['title']} {own['version']} against the libraries its users have today",
        weight="bold",
        fontsize=12.5,
    )
    axes.set_title(
        f"{machine_line(result)}\ndot: median of the per-round ratios · bar: interquartile range",
        fontsize=8.5,
        color="#555555",
        pad=12,
    )
    figure.legend(
        handles=handles, loc="outside lower center", ncols=len(handles), frameon=False, fontsize=9.5
    )


def _label(result: Mapping[str, Any], key: str) -> str:
    if key == MEMORY:
        return "memcpy, memset (2 threads)"
    return f"{LIBRARIES[key].title} {result['libraries'][key]['version']}"
