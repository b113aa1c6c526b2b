"""Records of the scoreboard: their form, what differs between two, and the score.

A record has a cell for each producer and consumer: one letter for each array, in the order of
`ARRAYS`, and the messages. The score of a pair of libraries counts arrays. An array counts if both
libraries can describe it: the library makes it, or takes it without harm from any library. It
arrives unharmed if one way brings it right, and no way does harm.
"""

from __future__ import annotations

import gzip
import json
import os
import zlib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path

from ... import libraries
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
HARM = "WRAL!~"
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


# -- the score -----------------------------------------------------------------------------------


@dataclass(frozen=True)
class Pair:
    """Two libraries: of `counted` arrays that both describe, `right` arrive unharmed. `worst` is a
    letter of harm, or empty.
    """

    source: str
    target: str
    counted: int
    right: int
    worst: str
    cells: tuple[Cell, ...]

    @property
    def share(self) -> float | None:
        return self.right / self.counted if self.counted else None


def pairs(record: Record, feature: str = "") -> dict[tuple[str, str], Pair]:
    """All pairs of libraries of a record; `feature` counts only its arrays."""
    describes: dict[str, set[int]] = {}
    grouped: dict[tuple[str, str], list[Cell]] = {}
    for cell in record.cells:
        grouped.setdefault((cell.source, cell.target), []).append(cell)
        for place, letter in enumerate(cell.outcomes):
            if letter != "-":
                describes.setdefault(cell.source, set()).add(place)
            if letter in RIGHT and not cell.flat:
                describes.setdefault(cell.target, set()).add(place)
    wanted = {n for n, array in enumerate(ARRAYS.values()) if feature in ("", array.feature)}
    result = {}
    for (source, target), cells in sorted(grouped.items()):
        made = {n for cell in cells for n in wanted if cell.outcomes[n] != "-"}
        counted = made & describes.get(target, set())
        ways = [cell.outcomes for cell in cells if not cell.flat]
        right = sum(_is_unharmed([way[n] for way in ways]) for n in counted) if ways else 0
        harm = {letter for cell in cells for n in wanted if (letter := cell.outcomes[n]) in HARM}
        worst = next((letter for letter in "!~LWAR" if letter in harm), "")
        result[source, target] = Pair(
            source, target, len(counted) if ways else 0, right, worst, tuple(cells)
        )
    return result


def _is_unharmed(letters: Iterable[str]) -> bool:
    seen = set(letters)
    return bool(seen & set(RIGHT)) and not seen & set(HARM)


def scores(record: Record) -> dict[str, tuple[int, int, int, int]]:
    """For each library: (right, counted) of the arrays that it passes to others, and (right,
    counted) of those that it takes.
    """
    found: dict[str, list[int]] = {}
    for pair in pairs(record).values():
        if pair.source != pair.target and pair.counted:
            for library, at in ((pair.source, 0), (pair.target, 2)):
                row = found.setdefault(library, [0, 0, 0, 0])
                row[at] += pair.right
                row[at + 1] += pair.counted
    return {name: (row[0], row[1], row[2], row[3]) for name, row in sorted(found.items())}


def features(record: Record, library: str, side: str) -> dict[str, tuple[int, int]]:
    """For each feature: (arrays that some way of this side brought right, arrays that were tried),
    with all libraries.

    Two features are kinds of memory and not arrays: NumPy's arrays of unaligned elements, and of a
    mapped file.
    """
    cells = [
        c
        for c in record.cells
        if (c.source if side == "producer" else c.target) == library and not c.flat
    ]
    found = {array.feature: (0, 0) for array in ARRAYS.values()}
    for name, array in ARRAYS.items():
        _count(found, array.feature, cells, name)
    for feature, producer in MEMORY.items() if side == "consumer" else ():
        found[feature] = (0, 0)
        chosen = [cell for cell in cells if cell.producer == producer]
        for name, array in ARRAYS.items():
            if array.plan.itemsize > 1:
                _count(found, feature, chosen, name)
    return found


def _count(found: dict[str, tuple[int, int]], feature: str, cells: list[Cell], array: str) -> None:
    place = list(ARRAYS).index(array)
    letters = {cell.outcomes[place] for cell in cells} - {"-"}
    if letters:
        right, tried = found[feature]
        found[feature] = right + bool(letters & set(RIGHT)), tried + 1


# -- scripts -------------------------------------------------------------------------------------


def standalone(record: Record, cell: Cell, array: str) -> str:
    """A program that repeats one exchange and prints both arrays; its header has its packages."""
    versions: Mapping[str, str] = record.libraries
    named = sorted({cell.source, cell.target} & versions.keys() - {"python"})
    packages = ", ".join(
        f'"{_package(name)}=={versions[name]}"' for name in named if versions[name]
    )
    plan = ARRAYS[array].plan.to_json(brief=True)
    return "\n".join(_script(cell, array, plan, record.python, packages)) + "\n"


def _package(module: str) -> str:
    try:
        return libraries.find(module).package
    except libraries.UnknownLibrary:
        return module


def _script(cell: Cell, array: str, plan: str, python: str, packages: str) -> Iterator[str]:
    yield "# /// script"
    yield f'# requires-python = "=={".".join(python.split(".")[:2])}.*"'
    yield f'# dependencies = ["gridbuf-conformance"{", " * bool(packages)}{packages}]'
    yield "# ///"
    yield f'"""{cell.producer} passes `{array}` to {cell.consumer}: {cell.outcome(array)}."""'
    yield ""
    yield "import faulthandler"
    yield ""
    yield "from gridbuf_conformance.plugins.scoreboard.cells import make, shown"
    yield "from gridbuf_conformance.plan import Plan"
    yield "from gridbuf_conformance.targets import Target, load"
    yield ""
    yield "faulthandler.enable()"
    yield f"plan = Plan.from_json({plan!r})"
    yield f"producer = load(Target({cell.producer!r}))"
    yield f'consumer = load(Target({cell.consumer!r}, side="consumer"))'
    yield "array, reason = make(producer, plan)"
    yield 'print("passed:", type(array), reason or shown(array, plan), flush=True)'
    yield "result = consumer.function(array)"
    yield 'print("arrived:", type(result), shown(result, plan))'
