"""The plots of a result: ratios of all kinds, copies beside the memory, and cost over size."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from gridbuf_benchmarks import plot_copies, plot_ratios, plot_sizes

__all__ = ["PLOTS", "names", "save"]

# Without a date and a program's version in it, an unchanged result gives an unchanged file.
_FORMATS: dict[str, dict[str, Any]] = {
    ".png": {"dpi": 96, "metadata": {"Software": None}, "pil_kwargs": {"optimize": True}},
    ".svg": {"metadata": {"Date": None}},
}

PLOTS: Mapping[str, Callable[[Mapping[str, Any]], Any]] = {
    "": plot_ratios.draw,
    "-copies": plot_copies.draw,
    "-sizes": plot_sizes.draw,
}
"""What draws each plot, by what is added to the name of the file; None if the result has nothing for it."""


def names(path: Path) -> dict[str, list[Path]]:
    """The files of each plot. A `path` ending in .png or .svg stands for that format; any other for both."""
    one = path.suffix in _FORMATS
    suffixes = [path.suffix] if one else list(_FORMATS)
    stem = path.name.removesuffix(path.suffix) if one else path.name
    return {
        addition: [path.with_name(stem + addition + suffix) for suffix in suffixes]
        for addition in PLOTS
    }


def save(result: Mapping[str, Any], path: Path) -> list[Path]:
    """Draws the result; returns the files written, none for a plot that has no case."""
    import matplotlib

    matplotlib.use("Agg")  # no display is needed, and none may be asked for
    matplotlib.rcParams.update({"svg.fonttype": "none", "svg.hashsalt": "gridbuf", "font.size": 10})
    written = []
    for addition, files in names(path).items():
        figure = PLOTS[addition](result)
        for file in files if figure is not None else []:
            figure.savefig(file, **_FORMATS[file.suffix])
            written.append(file)
    return written
