"""The page of the scoreboard's records in the documentation site: the matrices and cells of the
suite, and for each library why it has its score, what changed since its last release, its history.
"""

from __future__ import annotations

import io
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import jinja2
from packaging.version import InvalidVersion, Version
from records import FOLDER

from gridbuf_conformance import libraries
from gridbuf_conformance.plugins.scoreboard import page, score
from gridbuf_conformance.plugins.scoreboard.records import Record, differences
from gridbuf_conformance.plugins.scoreboard.score import Pair, Score
from gridbuf_conformance.render import badge
from gridbuf_conformance.render.html import environment

FIXED = ("python", "numpy")
"""The partners that releases of a library are compared with, besides the library."""
_SIDES = (("source", "target"), ("target", "source"))
_MANY_LINES = 60
_COLUMNS = 4


def render(records: Iterable[Record]) -> str:
    """The page in Markdown, for Sphinx. The record with the newest NumPy comes first; of several,
    that with the most cells.
    """
    boards = _boards(records)
    releases = history(boards)
    template = environment().overlay(loader=jinja2.FileSystemLoader(FOLDER))
    more = template.get_template("interop.html.j2").render(
        libraries=[*_libraries(boards)],
        history=[release for rows in releases.values() for release in rows],
        chart=chart(releases) if releases else "",
        rate=page.rate,
        min_partners=score.MIN_PARTNERS,
    )
    return f"# The matrix\n\n`````{{raw}} html\n{page.fragment(boards, more)}\n`````\n"


def write_badges(records: Iterable[Record], folder: Path) -> None:
    """Writes NAME.svg for each library with a rate: the page names them."""
    folder.mkdir(parents=True, exist_ok=True)
    for library in _libraries(_boards(records)):
        if text := library.rates:
            svg = badge.drawn("exchange", text, "silent", f"{library.title} {library.version}")
            (folder / f"{library.name}.svg").write_text(svg, "utf-8")


def _boards(records: Iterable[Record]) -> list[page.Board]:
    known = sorted(records, key=lambda r: (_newness(r.libraries.get("numpy", "")), len(r.cells)))
    return [page.Board(record, f"r{n}") for n, record in enumerate(reversed(known))]


# -- libraries -----------------------------------------------------------------------------------


@dataclass(frozen=True)
class Library:
    """A library in its newest release: its scores, and what changed since the release `before`."""

    name: str
    version: str
    board: page.Board
    passes: Score
    takes: Score
    before: str
    changes: list[str]

    @property
    def title(self) -> str:
        """Its name for people."""
        try:
            return libraries.find(self.name).name
        except libraries.UnknownLibrary:
            return self.name

    @property
    def document(self) -> str:
        return score.document(self.name)

    @property
    def sides(self) -> tuple[tuple[str, Score, str], ...]:
        """For each side: a verb, the score, and which side of a pair is the partner."""
        return ("passes", self.passes, "target"), ("takes", self.takes, "source")

    @property
    def rates(self) -> str:
        """The text of its badge; empty without a rate."""
        rated = [(verb, side) for verb, side, _ in self.sides if side.rate is not None]
        return ", ".join(f"{verb} {page.rate(side)} %" for verb, side in rated)


def _libraries(boards: Sequence[page.Board]) -> Iterator[Library]:
    for name in sorted({name for board in boards for name in board.scores}, key=str.lower):
        with_name = [board for board in boards if name in board.scores]
        having = [b for b in with_name if any(found.counted for found in b.scores[name])]
        by_version: dict[str, list[page.Board]] = {}
        for board in having or with_name:
            by_version.setdefault(board.record.libraries.get(name, ""), []).append(board)
        *older, newest = sorted(by_version, key=_newness)
        lines: list[str] = []
        if older:
            lines = _changes(*(_fixed(by_version[v], name) for v in (older[-1], newest)))
        if len(lines) > _MANY_LINES:
            lines[_MANY_LINES:] = [f"and {len(lines) - _MANY_LINES} more"]
        board = by_version[newest][0]
        before = older[-1] if older else ""
        yield Library(name, newest, board, *board.scores[name], before, lines)


def _changes(old: Record, new: Record) -> list[str]:
    """What changed between the libraries that are in both records."""
    both = {(c.source, c.target) for c in old.cells} & {(c.source, c.target) for c in new.cells}
    return differences(
        *(
            replace(record, cells=[c for c in record.cells if (c.source, c.target) in both])
            for record in (old, new)
        )
    )


def _fixed(boards: Sequence[page.Board], library: str) -> Record:
    """The cells of a library with the partners that all its releases have."""
    cells = {}
    for cell in (cell for board in boards for cell in board.record.cells):
        pair = {cell.source, cell.target}
        if library in pair and pair <= {*FIXED, library}:
            cells.setdefault(cell.key, cell)
    return replace(boards[0].record, cells=[*cells.values()])


def _newness(version: str) -> tuple[Version, str]:
    """What sorts versions: a text that is not a version is the oldest."""
    try:
        return Version(version), version
    except InvalidVersion:
        return Version("0"), version


# -- history -------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Release:
    """A release with the partners that all releases have; `partners` says which of them ran."""

    library: str
    version: str
    partners: tuple[str, ...]
    passes: Score
    takes: Score


def history(boards: Iterable[page.Board]) -> dict[str, list[Release]]:
    """The releases of each library that has several, oldest first. The arrays are those that all
    records have.
    """
    known = [*boards]
    common = set.intersection(*(score.tried(board.record) for board in known)) if known else set()
    runs: dict[tuple[str, str], dict[str, dict[str, Pair]]] = {}
    for board in known:
        for pair in board.pairs.values():
            for side, other in _SIDES:
                library, partner = getattr(pair, side), getattr(pair, other)
                version, found = (board.record.libraries.get(n, "") for n in (library, partner))
                if version and library != "python" and partner in (*FIXED, library):
                    label = "itself" if partner == library else f"{partner} {found}"
                    run = runs.setdefault((library, version), {}).setdefault(label, {})
                    run.setdefault(side, pair.of(common))
    result: dict[str, list[Release]] = {}
    for (library, version), run in sorted(runs.items(), key=lambda row: _newness(row[0][1])):
        scores = [
            Score(library, side, tuple(row[side] for row in run.values() if side in row))
            for side, _ in _SIDES
        ]
        release = Release(library, version, tuple(sorted(run)), *scores)
        result.setdefault(library, []).append(release)
    return {name: rows for name, rows in sorted(result.items()) if len(rows) > 1}


def chart(releases: Mapping[str, Sequence[Release]]) -> str:
    """What releases lose, as one SVG with a small chart for each library."""
    import matplotlib

    matplotlib.use("svg")
    matplotlib.rcParams.update({"svg.hashsalt": "gridbuf", "svg.fonttype": "none", "font.size": 8})
    from matplotlib import pyplot

    rows = -(-len(releases) // _COLUMNS)
    figure, axes = pyplot.subplots(
        rows, _COLUMNS, figsize=(10, 1.7 * rows), squeeze=False, layout="constrained"
    )
    places: list[Any] = [axis for row in axes for axis in row]
    for axis, (name, found) in zip(places, releases.items()):
        labels = [release.version.partition("+")[0] for release in found]
        for side, marker in (("passes", "o"), ("takes", "s")):
            scores = [getattr(release, side) for release in found]
            shares = [100 * s.lost / s.counted if s.counted else None for s in scores]
            axis.plot(
                labels,
                [float("nan") if s is None else s for s in shares],
                marker,
                ls="-",
                label=side,
                ms=4,
            )
        axis.set_title(name, fontsize=9)
        axis.set_ylim(-3, max(20.0, axis.get_ylim()[1]))
        axis.tick_params(axis="x", rotation=20)
    for axis in places[len(releases) :]:
        axis.axis("off")
    places[0].set_ylabel("lost, in percent")
    figure.legend(*places[0].get_legend_handles_labels(), loc="lower right")
    text = io.StringIO()
    figure.savefig(text, format="svg", transparent=True, metadata={"Date": None})
    pyplot.close(figure)
    svg = text.getvalue()
    svg = re.sub(r"<(metadata|style)\b.*?</\1>", "", svg[svg.index("<svg") :], flags=re.DOTALL)
    return re.sub(
        r"(?:stroke|fill): #000000", lambda m: m[0].partition(":")[0] + ": currentColor", svg
    )
