"""The scoreboard of `interop` for people: a table on the terminal, and a page of records.

The page is one file without external resources. It holds no date: the same records give the same
bytes.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from functools import cached_property

from rich.console import Console
from rich.table import Table
from rich.text import Text

from ... import findings
from .arrays import ARRAYS
from .records import (
    HARM,
    MEMORY,
    OUTCOMES,
    RIGHT,
    Cell,
    Record,
    features,
    pairs,
    scores,
    standalone,
)
from ...render.html import environment
from ...text import one_line

_FEATURES = tuple(dict.fromkeys(array.feature for array in ARRAYS.values()))
_HARM = {name for name, (letter, _) in OUTCOMES.items() if letter in HARM}


def render(records: Sequence[Record], changes: Sequence[str] | None = None) -> str:
    """The page of these records; `changes` are the differences since the last run, if known."""
    boards = [_Board(record, f"r{number}") for number, record in enumerate(records)]
    rows = [
        (
            library,
            board.record.libraries.get(library, ""),
            *board.percents(library),
            board.record.name,
        )
        for board in boards
        for library in scores(board.record)
    ]
    releases: dict[str, set[str]] = {}
    for library, version, *_ in rows:
        releases.setdefault(library, set()).add(version)
    return (
        environment()
        .get_template("interop.html.j2")
        .render(
            boards=boards,
            features=_FEATURES,
            columns=(*_FEATURES, *MEMORY),
            arrays=ARRAYS,
            outcomes=OUTCOMES,
            harm=_HARM,
            changes=changes,
            history=sorted(
                (r for r in rows if len(releases[r[0]]) > 1), key=lambda r: (r[0], r[-1])
            ),
        )
    )


class _Board:
    """One record as the page shows it."""

    def __init__(self, record: Record, id: str) -> None:
        self.record, self.id = record, id
        self.pairs = pairs(record)
        self.sources = sorted({source for source, _ in self.pairs})
        self.targets = sorted({target for _, target in self.pairs})
        times = {cell.key: cell.time_us for cell in record.cells}
        self._unit_us = times.get(("numpy", "numpy.from_dlpack")) or times.get(
            ("numpy", "numpy.asarray")
        )

    @cached_property
    def shares(self) -> dict[tuple[str, str], str]:
        """For each pair, what the filter shows: (right, counted, harm) by feature, as JSON."""
        found: dict[tuple[str, str], dict[str, tuple[int, int, bool]]] = {}
        for feature in ("", *_FEATURES):
            for key, pair in pairs(self.record, feature).items():
                found.setdefault(key, {})[feature] = (pair.right, pair.counted, bool(pair.worst))
        return {key: json.dumps(value, separators=(",", ":")) for key, value in found.items()}

    @cached_property
    def _scores(self) -> dict[str, tuple[int, int, int, int]]:
        return scores(self.record)

    def percents(self, library: str) -> tuple[str, str]:
        """What a library passes and takes."""
        row = self._scores.get(library, (0, 0, 0, 0))
        texts = [
            f"{100 * right / counted:.0f}" if counted else "–"
            for right, counted in (row[:2], row[2:])
        ]
        return texts[0], texts[1]

    def passed(self, library: str) -> str:
        return self.percents(library)[0]

    @property
    def features(self) -> list[tuple[str, str, dict[str, tuple[int, int]], str]]:
        """A row for each library and side."""
        rows = []
        for library in sorted({*self.sources, *self.targets}):
            producers = {cell.producer for cell in self.record.cells if cell.source == library}
            found = [p for name in sorted(producers) for p in self.record.protocols.get(name, ())]
            for side, title in (("producer", "passes"), ("consumer", "takes")):
                counts = features(self.record, library, side)
                if any(tried for _, tried in counts.values()):
                    protocols = ", ".join(dict.fromkeys(found)) if side == "producer" else ""
                    rows.append((library, title, counts, protocols))
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
        """The script of the array that says most: harm, else a refusal, else any."""
        for letters in (HARM, "ro?", RIGHT):
            for array, letter in zip(ARRAYS, cell.outcomes):
                if letter in letters:
                    return standalone(self.record, cell, array)
        return ""


def on_console(record: Record, console: Console) -> None:
    """The matrix of libraries, the scores, and what harms."""
    found = pairs(record)
    sources, targets = (
        list(dict.fromkeys(key[side] for key in sorted(found, key=lambda k: k[side])))
        for side in (0, 1)
    )
    if not found:
        console.print("no pair of libraries")
        return
    table = Table("from \\ to", *targets, "score", box=None, header_style="bold")
    passed = scores(record)
    for source in sources:
        cells = [_share(found.get((source, target))) for target in targets]
        right, counted = passed.get(source, (0, 0, 0, 0))[:2]
        table.add_row(source, *cells, f"{100 * right // counted} %" if counted else "")
    console.print(table)
    console.print(
        "share of the arrays that both libraries describe and that arrive unharmed; "
        "! a way does harm"
    )
    for cell in record.cells:
        for name, (letter, _) in OUTCOMES.items():
            if letter in HARM and letter in cell.outcomes:
                text = next(
                    (t for t, arrays in cell.messages.items() if cell.outcome(arrays[0]) == name),
                    "",
                )
                pair, count = f"{cell.producer} → {cell.consumer}", cell.outcomes.count(letter)
                line = one_line(f"{pair}: {name} on {count}: {text}")
                console.print(line, markup=False, soft_wrap=True)
    for library, reason in record.skipped.items():
        console.print(f"{library}: {one_line(reason)}", markup=False, soft_wrap=True)


def _share(pair: object) -> Text:
    share = getattr(pair, "share", None)
    if share is None:
        return Text("·" if pair is None else "–", style="dim")
    harmed = getattr(pair, "worst", "")
    return Text(f"{100 * share:.0f}{' !' if harmed else ''}", style="red" if harmed else "")
