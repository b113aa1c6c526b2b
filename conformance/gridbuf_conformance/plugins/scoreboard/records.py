"""Records of the scoreboard: their form, and what differs between two.

A record has a cell for each producer and consumer: one letter for each array, in the order of
`ARRAYS`, and the messages.
"""

from __future__ import annotations

import gzip
import json
import os
import zlib
from dataclasses import asdict, dataclass, field
from pathlib import Path

from ...version import __version__
from .arrays import ARRAYS, COUNTS, VERSION

SCHEMA = "gridbuf-conformance-interop"

OUTCOMES = {
    "shared": ("s", "arrives; the consumer's array is the producer's memory"),
    "copied": ("c", "arrives as a copy"),
    "arrived": ("a", "arrives; whether memory is shared was not seen"),
    "other rank": (
        "o",
        "the elements arrive, with other axes of one element, or empty with another rank",
    ),
    "converted": ("v", "the values arrive, rounded to another element type or as one text"),
    "became read-only": ("k", "shared memory that was writable cannot be written"),
    "refused": ("r", "the consumer raises an exception"),
    "wrong values": ("W", "other elements or another shape, without an error"),
    "read-only lost": ("R", "shared memory that the producer protects may be written"),
    "aliasing lost": ("A", "at the same address, but a write of the producer does not show"),
    "lifetime broken": ("L", "the elements change when the producer's array is gone"),
    "crash": ("!", "the process dies"),
    "hang": ("~", "no answer in the time limit"),
    "unread": ("?", "the result shows no values that can be compared"),
    "not made": ("-", "the producer does not make this array"),
}
"""The outcomes, with their letter in a record and their meaning."""

MEMORY = {"unaligned": "numpy.field", "mapped file": "numpy.memmap"}
"""Features that are the memory of a producer."""

RIGHT = "sca"
REDUCED = "vk"
"""Letters of what arrives with less than it had."""
HARM = "!~LWAR"
_LETTERS = {name: letter for name, (letter, _) in OUTCOMES.items()}
_NAMES = {letter: name for name, letter in _LETTERS.items()}


@dataclass
class Cell:
    """A producer and a consumer. If `flat`, it takes plain bytes: such cells have no score.

    `messages` has, for each text, the names of the arrays that it belongs to.
    """

    producer: str
    consumer: str
    source: str
    target: str
    outcomes: str = "-" * len(ARRAYS)
    messages: dict[str, list[str]] = field(default_factory=dict)
    time_us: float | None = None
    flat: bool = False

    @property
    def key(self) -> tuple[str, str]:
        return self.producer, self.consumer

    def set(self, array: str, outcome: str, message: str = "") -> None:
        """Notes the outcome of one array; the reason why an array is not made is not kept."""
        place = list(ARRAYS).index(array)
        letter = _LETTERS[outcome]
        self.outcomes = self.outcomes[:place] + letter + self.outcomes[place + 1 :]
        if message and outcome != "not made":
            self.messages.setdefault(message, []).append(array)

    def outcome(self, array: str) -> str:
        return _NAMES[self.outcomes[list(ARRAYS).index(array)]]

    def message(self, array: str) -> str:
        return next((text for text, names in self.messages.items() if array in names), "")


@dataclass
class Record:
    """One run. `libraries` has versions, `skipped` the targets that cannot be loaded, `protocols`
    what the arrays of a producer have. `arrays` is the version of the set of arrays: those that are
    newer count as not made.
    """

    python: str
    platform: str
    libraries: dict[str, str] = field(default_factory=dict)
    skipped: dict[str, str] = field(default_factory=dict)
    protocols: dict[str, list[str]] = field(default_factory=dict)
    cells: list[Cell] = field(default_factory=list)
    name: str = ""
    suite: str = __version__
    arrays: int = VERSION


def save(record: Record, path: Path) -> None:
    """Writes a record as JSON, with sorted cells; compressed if the name ends with .gz. A reader
    never sees a part of it.
    """
    cells = sorted(record.cells, key=lambda cell: cell.key)
    count = COUNTS[record.arrays]
    data = {
        "schema": f"{SCHEMA}/{record.arrays}",
        **asdict(record),
        "cells": [{**asdict(c), "outcomes": c.outcomes[:count]} for c in cells],
    }
    for key in ("libraries", "skipped", "protocols"):
        data[key] = dict(sorted(data[key].items()))
    text = json.dumps({**data, "cells": None}, indent=1, ensure_ascii=False)
    lines = ",\n  ".join(json.dumps(cell, ensure_ascii=False) for cell in data["cells"])
    text = text.replace('"cells": null', f'"cells": [\n  {lines}\n ]') + "\n"
    scratch = path.with_name(f".{path.name}.{os.getpid()}")
    raw = text.encode()
    scratch.write_bytes(gzip.compress(raw, mtime=0) if path.suffix == ".gz" else raw)
    scratch.replace(path)


class RecordError(ValueError):
    """A file that is not a record of the scoreboard."""


def load(path: Path) -> Record:
    """Reads a record of any version; raises RecordError for another file."""
    try:
        raw = path.read_bytes()
        data = json.loads(gzip.decompress(raw) if path.suffix == ".gz" else raw)
        if data.pop("schema") != f"{SCHEMA}/{data['arrays']}" or data["arrays"] not in COUNTS:
            raise ValueError(f"it is not {SCHEMA} of a version in {[*COUNTS]}")
        record = Record(**{**data, "cells": [Cell(**cell) for cell in data["cells"]]})
        for cell in record.cells:
            cell.outcomes = cell.outcomes.ljust(len(ARRAYS), "-")
    except (
        OSError,
        EOFError,
        zlib.error,
        ValueError,
        KeyError,
        TypeError,
        AttributeError,
    ) as error:
        raise RecordError(
            f"{path} is not a record of `interop --save`: {error}; write it again"
        ) from None
    record.name = record.name or path.name.partition(".")[0]
    return record


def differences(old: Record, new: Record) -> list[str]:
    """What changed in the new record, a line for each cell and change, and what is missing."""
    before = {cell.key: cell for cell in old.cells}
    known = [*ARRAYS][: min(COUNTS[record.arrays] for record in (old, new))]
    lines = []
    for cell in sorted(new.cells, key=lambda cell: cell.key):
        was = before.pop(cell.key, None)
        title = f"{cell.producer} → {cell.consumer}"
        if was is None:
            lines.append(f"{title}: new")
            continue
        changed: dict[tuple[str, str], list[str]] = {}
        for name, one, other in zip(known, was.outcomes, cell.outcomes):
            if one != other:
                changed.setdefault((_NAMES[one], _NAMES[other]), []).append(name)
        for (one, other), names in changed.items():
            text = cell.message(names[0])
            lines.append(
                f"{title}: {one} → {other}: {', '.join(names)}{f' ({text})' if text else ''}"
            )
    run = {(cell.source, cell.target) for cell in new.cells}
    for cell in before.values():
        if (cell.source, cell.target) in run or {*cell.key} & new.skipped.keys():
            lines.append(f"{cell.producer} → {cell.consumer}: no longer there")
    return lines
