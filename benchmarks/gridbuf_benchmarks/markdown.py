"""The document of a result: a template with what people wrote, and in its gaps what a run found.

The template is `performance.template.md`. Its gaps are `{{word argument …}}`, see `_FILLERS`; nothing else of it
is changed, and nothing of the document comes from anywhere else: to change a sentence, change the template; to
change a figure, run again.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from importlib import resources
from itertools import groupby
from pathlib import Path
from typing import Any

from gridbuf_benchmarks import plot
from gridbuf_benchmarks.grid import Cell, grids
from gridbuf_benchmarks.libraries import BASELINE, LIBRARIES, MEMORY, PEERS
from gridbuf_benchmarks.table import (
    format_ratio,
    format_speed,
    format_spread,
    format_time,
    promise_words,
)

__all__ = ["document", "safe", "template", "write"]

_GAP = re.compile(r"\{\{(\w+)((?: [^ }]+)*)\}\}")
_NOT_RUN = "–"
_CHAPTER_TITLES = {
    "allocate": "Allocation",
    "exchange": "Exchange",
    "storage": "Storages",
    "call": "Calls of stencils",
    "stencil": "Compiled stencils",
    "halo": "Halos over ranks",
    "from_array": "New arrays in another layout",
    "tiny": "Copies of a few elements",
    "cache": "Copies in cache, from C",
    "copy": "Copies between layouts",
    "cast": "Copies that convert",
    "fill": "Fills",
    "sizes": "The same at growing sizes",
}


def template() -> str:
    """The document with its gaps."""
    return resources.files("gridbuf_benchmarks").joinpath("performance.template.md").read_text()


def write(result: Mapping[str, Any], path: Path, pictures: Path) -> None:
    """Writes the document of a result to `path`; its plots are those that `plot.save` draws for `pictures`."""
    links = {
        addition: os.path.relpath(files[0], path.parent)
        for addition, files in plot.names(pictures).items()
    }
    path.write_text(document(result, template(), links))


def document(result: Mapping[str, Any], text: str, links: Mapping[str, str]) -> str:
    """The text with its gaps filled; `links` are the pictures by what is added to their names.

    Raises:
      ValueError: for a gap that nobody fills, or with other arguments than it takes.
    """
    run = _Run(result, links)

    def fill(gap: re.Match[str]) -> str:
        word, arguments = gap[1], gap[2].split()
        try:
            return _FILLERS[word](run, *arguments)
        except (KeyError, TypeError) as error:
            known = ", ".join(sorted(_FILLERS))
            raise ValueError(
                f"{gap[0]} in the template cannot be filled ({type(error).__name__}: {error}); gaps are {known}"
            ) from error

    return _GAP.sub(fill, text)


class _Run:
    """A result with its cases by id, and the pictures that were drawn of it."""

    def __init__(self, result: Mapping[str, Any], links: Mapping[str, str]) -> None:
        self.result = result
        self.links = links
        self.cases: Mapping[str, Mapping[str, Any]] = {case["id"]: case for case in result["cases"]}

    def ratio(self, id: str, peer: str) -> Mapping[str, float] | None:
        found: Mapping[str, float] | None = self.cases.get(id, {"ratios": {}})["ratios"].get(peer)
        return found


# What fills gaps


def _facts(run: _Run) -> str:
    """Machine, versions, how long it took, and what made the figures less trustworthy."""
    result, facts = run.result, run.result["machine"]
    kind = ", virtual machine" if facts["virtual_machine"] else ""
    caches = ", ".join(f"{level} {size >> 10} KiB" for level, size in facts["cache_bytes"].items())
    pages = sorted({case["memory"]["page_bytes"] for case in result["cases"] if case["memory"]})
    lines = [
        f"recorded: {result['created']}, {'quick' if result['quick'] else 'full'} run of {len(result['cases'])} cases"
        f" in {result['seconds'] / 60:.1f} minutes",
        f"CPU: {facts['cpu_model']} ({facts['cpu_family']}), {facts['cores_usable']} cores{kind}, "
        f"governor {facts['governor'] or 'not readable'}, {', '.join(facts['cpu_flags'])}; caches of data: {caches}",
        f"GPU: {', '.join(facts['gpu_models']) or 'none'}",
        f"memory: {facts['memory_bytes'] / 2**30:.0f} GiB, huge pages: {facts['huge_pages']}",
        f"system: {facts['system']}, Linux {facts['kernel']}, {facts['libc']}",
        f"Python {facts['python']}, {', '.join(_versions(result))}",
        "gridbuf's extension: "
        + ", ".join(
            f"{key} {value}" for key, value in result["libraries"][BASELINE]["build"].items()
        ),
    ]
    if pages:
        sizes = " and ".join(f"{size >> 10} KiB" for size in pages)
        lines.append(f"pages below what copies and fills read and write: {sizes}")
    lines += [f"**{warning}**" for warning in result["warnings"]]
    return "\n".join(f"- {line}" for line in lines)


def _gpu(run: _Run) -> str:
    """The models of the GPUs, or that there was none, so that nothing here was measured on one."""
    return ", ".join(run.result["machine"]["gpu_models"]) or "none, so nothing was measured on one"


def _versions(result: Mapping[str, Any]) -> Iterator[str]:
    for key in (BASELINE, "numpy", "torch", "gt4py", "memcpy_halves"):
        library = result["libraries"][key]
        if library["state"] == "present":
            title = "glibc's memcpy" if key == "memcpy_halves" else library["title"]
            threads = f" ({library['threads']} threads)" if "threads" in library else ""
            yield f"{title} {library['version']}{threads}"


def _targets(run: _Run) -> str:
    """A table of all promises."""
    lines = ["| target | | reached |", "|---|---|---|"]
    for promise in run.result["promises"]:
        what, stands = promise_words(promise)
        word, _, figures = stands.partition(": ")
        word = "**missed**" if promise["met"] is False else word
        lines.append(f"| {safe(what)} | {word} | {safe(figures)} |")
    return "\n".join(lines)


def _verdict(run: _Run, promise: str) -> str:
    """'met' or '**missed**'."""
    (met,) = [one["met"] for one in run.result["promises"] if one["id"] == promise]
    return {True: "met", False: "**missed**", None: "not measured"}[met]


def _ratio(run: _Run, id: str, peer: str) -> str:
    """Time of gridbuf ÷ time of the peer."""
    found = run.ratio(id, peer)
    return format_ratio(found["median"]) if found else _NOT_RUN


def _speed(run: _Run, id: str, peer: str) -> str:
    """How many times as fast as the peer."""
    found = run.ratio(id, peer)
    return format_speed(found["median"]) if found else _NOT_RUN


def _time(run: _Run, id: str, library: str = BASELINE) -> str:
    """The time of one call."""
    case = run.cases.get(id)
    times = (
        {one["library"]: one["nanoseconds"]["median"] for one in case["contenders"]} if case else {}
    )
    return format_time(times[library]) if library in times else _NOT_RUN


def _range(run: _Run, pattern: str, peer: str) -> str:
    """The least and the largest speed over the cases whose ids match the regular expression."""
    speeds = [
        1 / case["ratios"][peer]["median"]
        for id, case in run.cases.items()
        if re.fullmatch(pattern, id) and peer in case["ratios"]
    ]
    if not speeds:
        return _NOT_RUN
    low, high = (format_speed(1 / speed) for speed in (min(speeds), max(speeds)))
    return low if low == high else f"{low} to {high}"


def _grids(run: _Run) -> str:
    """The matrix of copies: speed relative to the memory's, a table for each item size."""
    parts = []
    for grid in grids([case for case in run.result["cases"] if MEMORY in case["ratios"]]):
        lines = [
            f"| {grid.title} | {' | '.join(grid.columns)} |",
            "|---|" + "--:|" * len(grid.columns),
        ]
        lines += [
            f"| {label} | {' | '.join(map(_grid_cell, cells))} |" for label, cells in grid.rows
        ]
        parts.append("\n".join(lines))
    return "\n\n".join(parts) or "(no copies in this run)"


def _grid_cell(cell: Cell | None) -> str:
    if cell is None:
        return _NOT_RUN
    speed = format_speed(cell.ratio)
    return f"**{speed}**" if cell.met is False else speed


def _plot(run: _Run, addition: str, *words: str) -> str:
    """The picture whose name has this addition (`ratios` for none), with what it shows."""
    key = "" if addition == "ratios" else f"-{addition}"
    drawn = plot.PLOTS[key](run.result) is not None
    return (
        f"![{' '.join(words)}]({run.links[key]})"
        if drawn
        else "(no case for this picture in this run)"
    )


def _tables(run: _Run, *chapters: str) -> str:
    """Every case of the chapters (of all others with `-` before them), one row each, in tables by chapter."""
    left_out = {name[1:] for name in chapters if name.startswith("-")}
    parts = []
    for chapter, cases in groupby(run.result["cases"], lambda case: case["id"].partition("/")[0]):
        if chapter not in left_out and (left_out or chapter in chapters):
            some = list(cases)
            beside_memory = any(MEMORY in case["ratios"] for case in some)
            rows = (_memory_table if beside_memory else _ratio_table)(some)
            parts.append("\n".join([f"### {_CHAPTER_TITLES.get(chapter, chapter)}\n", *rows]))
    return "\n\n".join(parts) or "(no such case in this run)"


def _ratio_table(cases: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """Times of gridbuf divided by those of the peers."""
    peers = [key for key in PEERS if any(key in case["ratios"] for case in cases)]
    yield f"| case | gridbuf | {' | '.join(f'÷ {LIBRARIES[key].title}' for key in peers)} |"
    yield "|---|--:|" + "--:|" * len(peers)
    for case in cases:
        times = {one["library"]: one["nanoseconds"]["median"] for one in case["contenders"]}
        cells = [safe(case["title"]), format_time(times[BASELINE])]
        for key in peers:
            ratio = case["ratios"].get(key)
            cells.append(
                f"**{format_ratio(ratio['median'])}** {format_spread(ratio).strip()} ({format_time(times[key])})"
                if ratio
                else _NOT_RUN
            )
        yield f"| {' | '.join(cells)} |"


def _memory_table(cases: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """Speeds of gridbuf: relative to the memory's, and times those of the peers."""
    peers = [key for key in PEERS if any(key in case["ratios"] for case in cases)]
    columns = [
        "case",
        "gridbuf",
        "GB/s",
        "of the memory",
        *(f"× {LIBRARIES[key].title}" for key in peers),
    ]
    yield f"| {' | '.join(columns)} |"
    yield "|---|" + "--:|" * (len(columns) - 1)
    for case in cases:
        nanoseconds = case["contenders"][0]["nanoseconds"]["median"]
        moved = case["work"]["bytes_moved"]
        cells = [
            safe(case["title"]),
            format_time(nanoseconds),
            f"{moved / nanoseconds:.3g}" if moved else _NOT_RUN,
        ]
        for key in (MEMORY, *peers):
            ratio = case["ratios"].get(key)
            cells.append(
                f"{format_speed(ratio['median'])} {format_spread(ratio).strip()}"
                if ratio
                else _NOT_RUN
            )
        cells[3] = f"**{cells[3]}**"
        yield f"| {' | '.join(cells)} |"


def _notes(run: _Run) -> str:
    """What is compared in each chapter, and what differs."""
    by_note: dict[str, list[str]] = {}
    for case in run.result["cases"]:
        group = case["id"].partition("/")[0]
        groups = by_note.setdefault(case["note"], [])
        if group not in groups:
            groups.append(group)
    return "\n".join(f"- {', '.join(groups)}: {safe(note)}" for note, groups in by_note.items())


def safe(text: str) -> str:
    """Plain text as Markdown, in a table, too."""
    return text.replace("_", r"\_").replace("|", r"\|").replace("*", r"\*")


_FILLERS: Mapping[str, Callable[..., str]] = {
    "facts": _facts,
    "gpu": _gpu,
    "grids": _grids,
    "notes": _notes,
    "plot": _plot,
    "range": _range,
    "ratio": _ratio,
    "speed": _speed,
    "tables": _tables,
    "targets": _targets,
    "time": _time,
    "verdict": _verdict,
}
