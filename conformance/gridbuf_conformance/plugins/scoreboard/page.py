"""The scoreboard of `interop` for people: a table on the terminal, and a page of records.

The page is one file without external resources, or a part of a page of a site, whose theme it
takes. It holds no date: the same records give the same bytes.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from functools import cached_property

from markupsafe import Markup
from rich.console import Console
from rich.table import Table
from rich.text import Text

from ... import findings
from ...render.html import environment
from ...text import one_line
from . import score, scripts
from .arrays import ARRAYS
from .records import HARM, MEMORY, OUTCOMES, RIGHT, Cell, Record
from .score import Cause, Pair, Score

_FEATURES = {
    feature: [name for name, array in ARRAYS.items() if array.feature == feature]
    for feature in dict.fromkeys(array.feature for array in ARRAYS.values())
}
_HARM = {name for name, (letter, _) in OUTCOMES.items() if letter in HARM}
_MANY_LINES = 40


def render(records: Sequence[Record], changes: Sequence[str] | None = None) -> str:
    """The page of these records, the first one first; `changes` are the differences since the last
    run, if known.
    """
    boards = [Board(record, f"r{number}") for number, record in enumerate(records)]
    return fragment(boards, changes=changes, template="interop.html.j2")


def fragment(
    boards: Sequence[Board],
    more: str = "",
    changes: Sequence[str] | None = None,
    template: str = "interop_board.html.j2",
) -> str:
    """The part of a page that has these records; `more` goes below the first matrix."""
    return (
        environment()
        .get_template(template)
        .render(
            boards=boards,
            more=Markup(more),
            features=_FEATURES,
            columns=(*_FEATURES, *MEMORY),
            arrays=ARRAYS,
            outcomes=OUTCOMES,
            harm=_HARM,
            changes=changes,
            rate=rate,
            min_partners=score.MIN_PARTNERS,
        )
    )


def rate(found: Score) -> str:
    """A score in percent; a dash with too few partners, or without an array."""
    return "–" if found.rate is None else f"{100 * found.rate:.0f}"


class Board:
    """One record as the page shows it."""

    def __init__(self, record: Record, id: str) -> None:
        self.record, self.id = record, id
        self.pairs = score.pairs(record)
        self.scores = score.scores(self.pairs)
        self.sources = sorted({source for source, _ in self.pairs})
        self.targets = sorted({target for _, target in self.pairs})
        times = {cell.key: cell.time_us for cell in record.cells}
        self._unit_us = times.get(("numpy", "numpy.from_dlpack")) or times.get(
            ("numpy", "numpy.asarray")
        )

    def anchor(self, pair: Pair | Cell) -> str:
        """The place of the cells of a pair in the page."""
        return f"{self.id}-{pair.source}-{pair.target}"

    def shares(self, pair: Pair) -> str:
        """What the filter shows: (right, counted, harm) by feature, as JSON."""
        chosen = {"": pair, **{name: pair.of(arrays) for name, arrays in _FEATURES.items()}}
        found = {k: (p.right, len(p.counted), bool(p.harmed)) for k, p in chosen.items()}
        return json.dumps(found, separators=(",", ":"))

    @cached_property
    def causes(self) -> list[tuple[Cause, list[tuple[Cell, list[str]]], int]]:
        """Each cause of harm or of a conversion, its cells with their arrays, and their number."""
        found: dict[Cause, list[tuple[Cell, list[str]]]] = {}
        for cell in self.record.cells:
            by_cause: dict[Cause, list[str]] = {}
            for array in ARRAYS:
                if cause := score.cause_of(cell, array):
                    by_cause.setdefault(cause, []).append(array)
            for cause, arrays in by_cause.items():
                found.setdefault(cause, []).append((cell, arrays))
        rows = [
            (cause, cells, sum(len(some) for _, some in cells)) for cause, cells in found.items()
        ]
        return sorted(rows, key=lambda row: (-row[2], row[0].id))

    @property
    def features(self) -> list[tuple[str, str, dict[str, tuple[int, int]], str]]:
        """A row for each library and side."""
        rows = []
        for library in sorted({*self.sources, *self.targets}):
            producers = {cell.producer for cell in self.record.cells if cell.source == library}
            found = [p for name in sorted(producers) for p in self.record.protocols.get(name, ())]
            for side, text in (("producer", "passes"), ("consumer", "takes")):
                counts = score.features(self.record, library, side)
                if any(tried for _, tried in counts.values()):
                    protocols = ", ".join(dict.fromkeys(found)) if side == "producer" else ""
                    rows.append((library, text, counts, protocols))
        return rows

    def told(self, cell: Cell) -> list[tuple[str, str, str]]:
        """(outcome, arrays, message) of a cell, harm first."""
        grouped: dict[tuple[str, str], list[str]] = {}
        for array in ARRAYS:
            outcome = cell.outcome(array)
            if outcome != "not made":
                grouped.setdefault((outcome, cell.message(array)), []).append(array)
        rows = [(outcome, ", ".join(names), text) for (outcome, text), names in grouped.items()]
        return sorted(rows, key=lambda row: (row[0] not in _HARM, list(OUTCOMES).index(row[0])))

    def time(self, cell: Cell) -> str:
        """The time of an exchange, relative to that of NumPy with itself."""
        if cell.time_us is None:
            return ""
        return (
            f"{cell.time_us / self._unit_us:.1f} × NumPy" if self._unit_us else f"{cell.time_us} µs"
        )

    def findings(self, cell: Cell) -> list[findings.Finding]:
        """The findings whose replay drives the producer or consumer of a cell that is not right."""
        if not set(cell.outcomes) - set(RIGHT) - {"-"}:
            return []
        sides = {cell.producer: "producer", cell.consumer: "consumer"}
        return [
            finding
            for finding in findings.load().values()
            if any(sides.get(word) == finding.side for word in finding.replay.split())
        ]

    def script(self, cell: Cell) -> str:
        """The script of the array that says most: harm, else less than was passed, else any."""
        for letters in (HARM, "vkro?", RIGHT):
            for array, letter in zip(ARRAYS, cell.outcomes):
                if letter in letters:
                    return scripts.standalone(self.record, cell, array)
        return ""


def on_console(record: Record, console: Console) -> None:
    """The matrix of libraries, the scores, and what causes harm."""
    board = Board(record, "")
    if not board.pairs:
        console.print("no pair of libraries")
        return
    table = Table("from \\ to", *board.targets, "score", box=None, header_style="bold")
    for source in board.sources:
        shares = [_share(board.pairs.get((source, target))) for target in board.targets]
        found = rate(board.scores[source][0])
        table.add_row(source, *shares, found if found == "–" else f"{found} %")
    console.print(table)
    console.print(
        "share of the arrays of both that arrive; ! is harm; "
        "score: the share that a library does not lose"
    )
    for cause, cells, count in board.causes:
        where = ", ".join(f"{cell.producer} → {cell.consumer}" for cell, _ in cells)
        line = one_line(f"{'/'.join(cause.libraries)}: {cause.title}: {count} arrays in {where}")
        console.print(line, markup=False, soft_wrap=True)
    for library, reason in record.skipped.items():
        console.print(f"{library}: {one_line(reason)}", markup=False, soft_wrap=True)


def _share(pair: Pair | None) -> Text:
    if pair is None or (pair.share is None and not pair.harmed):
        return Text("·" if pair is None else "–", style="dim")
    share = "–" if pair.share is None else f"{100 * pair.share:.0f}"
    return Text(f"{share}{' !' if pair.harmed else ''}", style="red" if pair.harmed else "")
