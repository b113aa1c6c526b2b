"""The score: which arrays count for two libraries, which of them are lost, and by what.

An array counts if the documentation of both libraries has it, or if it is harmed. It is lost if it
does not arrive, or if a way harms it. Harm has a cause, and counts against the library of the cause
alone; a refusal counts against both. A documented conversion loses half of an array; any other
conversion is harm. The documented arrays and the causes come with the findings: without them, a
library has the arrays that a run shows, and harm counts against both.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Set
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from functools import lru_cache
from typing import Any

from ... import findings
from .arrays import ARRAYS
from .records import HARM, MEMORY, REDUCED, RIGHT, Cell, Record

MIN_PARTNERS = 3
"""A library with fewer partners has no rate."""
_PLACES = {name: place for place, name in enumerate(ARRAYS)}


# -- what counts ---------------------------------------------------------------------------------


def document(library: str) -> str:
    """The address of the documentation that the arrays of a library are from; empty for none."""
    return str(findings.scoreboard()["documented"].get(library, {}).get("document", ""))


def _has(library: str, side: str, kind: str) -> frozenset[str] | None:
    """The documented arrays (`kind` is "arrays") or interfaces ("by") of a side; None for a library
    that is not listed.
    """
    row = findings.scoreboard()["documented"].get(library)
    return None if row is None else frozenset(row.get(side, {}).get(kind, ()))


def _is_exchanged(source: str, target: str) -> bool:
    """Whether two libraries have an interface in common; of one that is not listed, any may be."""
    given, taken = _has(source, "makes", "by"), _has(target, "takes", "by")
    return given is None or taken is None or bool(given & taken)


# -- causes --------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Cause:
    """Why arrays are lost: a known cause, or an outcome that none explains.

    `libraries` lose the array. `cells` are patterns of "PRODUCER CONSUMER OUTCOME".
    """

    id: str
    title: str
    libraries: tuple[str, ...]
    link: str = ""
    finding: str = ""
    cells: tuple[str, ...] = ()
    arrays: tuple[str, ...] = ("*",)

    def explains(self, cell: Cell, array: str, outcome: str) -> bool:
        """Whether an observation has this cause."""
        text = f"{cell.producer} {cell.consumer} {outcome}"
        return any(fnmatchcase(text, pattern) for pattern in self.cells) and any(
            fnmatchcase(array, pattern) for pattern in self.arrays
        )


@lru_cache(maxsize=1)
def causes() -> tuple[Cause, ...]:
    """The causes that are known."""
    lists = ("libraries", "cells", "arrays")
    rows: list[dict[str, Any]] = [
        {key: tuple(value) if key in lists else value for key, value in row.items()}
        for row in findings.scoreboard()["causes"]
    ]
    return tuple(Cause(**row) for row in rows)


@lru_cache(maxsize=1 << 16)
def _cause(key: tuple[str, str], libraries: tuple[str, ...], array: str, outcome: str) -> Cause:
    cell = Cell(*key, "", "")
    found = (cause for cause in causes() if cause.explains(cell, array, outcome))
    title = f"{outcome}, not explained yet: {key[1]}"
    return next(found, Cause(title, title, tuple(dict.fromkeys(libraries))))


def cause_of(cell: Cell, array: str) -> Cause | None:
    """The cause of what harms or converts an array in a cell; None for other outcomes."""
    if cell.outcomes[_PLACES[array]] not in HARM + REDUCED:
        return None
    return _cause(cell.key, (cell.source, cell.target), array, cell.outcome(array))


# -- the score -----------------------------------------------------------------------------------


@dataclass(frozen=True)
class Loss:
    """An array that is lost between two libraries, or half of it."""

    array: str
    cause: Cause
    share: float = 1.0


@dataclass(frozen=True, eq=False)
class Pair:
    """Two libraries: of the `counted` arrays, which are lost and which `harmed`.

    `is_scored` is false if they have no common array, or only ways that take plain bytes. Then only
    harmed arrays are counted.
    """

    source: str
    target: str
    cells: tuple[Cell, ...]
    is_scored: bool
    counted: frozenset[str]
    harmed: frozenset[str]
    losses: tuple[Loss, ...]

    @property
    def right(self) -> float:
        """The arrays that arrive; half of one that is converted as documented."""
        return len(self.counted) - lost(self.losses)

    @property
    def share(self) -> float | None:
        """What arrives of what is counted; None without a score."""
        return self.right / len(self.counted) if self.counted and self.is_scored else None

    def of(self, arrays: Iterable[str]) -> Pair:
        """The pair with these arrays only."""
        chosen = self.counted & set(arrays)
        losses = tuple(loss for loss in self.losses if loss.array in chosen)
        return replace(self, counted=chosen, harmed=self.harmed & chosen, losses=losses)


def lost(losses: Iterable[Loss]) -> float:
    """The arrays that are lost: each once, whatever its causes."""
    shares: dict[str, float] = {}
    for loss in losses:
        shares[loss.array] = max(loss.share, shares.get(loss.array, 0.0))
    return sum(shares.values())


def tried(record: Record) -> set[str]:
    """The arrays that some library of a record makes: older records do not have all."""
    return {name for cell in record.cells for name in _with(cell, lambda letter: letter != "-")}


def _with(cell: Cell, test: Callable[[str], bool]) -> set[str]:
    return {name for name, letter in zip(ARRAYS, cell.outcomes) if test(letter)}


def pairs(record: Record) -> dict[tuple[str, str], Pair]:
    """All pairs of libraries of a record."""
    grouped: dict[tuple[str, str], list[Cell]] = {}
    for cell in record.cells:
        grouped.setdefault((cell.source, cell.target), []).append(cell)
    seen: Mapping[tuple[str, str], Set[str]] = _measured(record)
    known, result = tried(record), {}
    for (source, target), cells in sorted(grouped.items()):
        sides = (source, "makes"), (target, "takes")
        listed = [_has(library, side, "arrays") for library, side in sides]
        makes, takes = (seen[at] if it is None else it for at, it in zip(sides, listed))
        both = makes & takes & known if _is_exchanged(source, target) else frozenset()
        result[source, target] = _pair(source, target, tuple(cells), both)
    return result


def _measured(record: Record) -> dict[tuple[str, str], set[str]]:
    """What a library that is not listed makes, and takes without harm from any library."""
    found: dict[tuple[str, str], set[str]] = {}
    for cell in record.cells:
        made, arrived = _with(cell, lambda letter: letter != "-"), set(RIGHT + REDUCED)
        taken = set() if cell.flat else _with(cell, arrived.__contains__)
        found.setdefault((cell.source, "makes"), set()).update(made)
        found.setdefault((cell.target, "takes"), set()).update(taken)
    return found


def _pair(source: str, target: str, cells: tuple[Cell, ...], documented: Set[str]) -> Pair:
    ways = tuple(cell for cell in cells if not cell.flat)
    harmed = {name for cell in cells for name in ARRAYS if _is_harm(cell, name)}
    counted = (documented if ways else set()) | harmed
    among = ((name, cells if name in harmed else ways) for name in ARRAYS if name in counted)
    losses = [loss for name, some in among for loss in _losses(some, name)]
    return Pair(
        source,
        target,
        cells,
        bool(ways and documented),
        frozenset(counted),
        frozenset(harmed),
        tuple(losses),
    )


def _is_harm(cell: Cell, array: str) -> bool:
    """Harm, or a conversion that no document describes."""
    if cell.outcomes[_PLACES[array]] in HARM:
        return True
    return cell.outcome(array) == "converted" and not getattr(cause_of(cell, array), "link", "")


def _losses(cells: tuple[Cell, ...], array: str) -> Iterator[Loss]:
    found = {cell.outcomes[_PLACES[array]]: cell for cell in reversed(cells)}
    harm = dict.fromkeys(cause_of(cell, array) for cell in cells if _is_harm(cell, array))
    if harm:
        yield from (Loss(array, cause) for cause in harm if cause)
    elif not found.keys() & set(RIGHT):
        letter = next(letter for letter in REDUCED + "or?-" if letter in found)
        cell = found[letter]
        libraries = (cell.source,) if letter == "-" else (cell.source, cell.target)
        without = Cause(cell.outcome(array), cell.outcome(array), libraries)
        yield Loss(array, cause_of(cell, array) or without, 0.5 if letter in REDUCED else 1.0)


@dataclass(frozen=True)
class Score:
    """What a library passes (`side` is "source") or takes ("target"), and what it loses there."""

    library: str
    side: str
    pairs: tuple[Pair, ...]

    @property
    def counted(self) -> int:
        return sum(len(pair.counted) for pair in self.pairs)

    @property
    def lost(self) -> float:
        """The arrays that the library loses; those that a partner loses are not held against it."""
        return sum(lost(self._own(pair)) for pair in self.pairs)

    @property
    def rate(self) -> float | None:
        """The share that it does not lose; None with fewer partners than `MIN_PARTNERS`."""
        is_enough = sum(pair.is_scored for pair in self.pairs) >= MIN_PARTNERS
        return 1 - self.lost / self.counted if is_enough else None

    def _own(self, pair: Pair) -> list[Loss]:
        return [loss for loss in pair.losses if self.library in loss.cause.libraries]

    def by_cause(self) -> list[tuple[Cause, dict[Pair, list[str]], float]]:
        """Its losses: a cause, the arrays of each pair, and how many arrays that is."""
        found: dict[str, tuple[Cause, dict[Pair, list[Loss]]]] = {}
        for pair in self.pairs:
            for loss in self._own(pair):
                row = found.setdefault(loss.cause.id, (loss.cause, {}))
                row[1].setdefault(pair, []).append(loss)
        rows = [
            (
                cause,
                {p: [x.array for x in some] for p, some in by.items()},
                sum(map(lost, by.values())),
            )
            for cause, by in found.values()
        ]
        return sorted(rows, key=lambda row: (-row[2], row[0].id))


def scores(found: Mapping[tuple[str, str], Pair]) -> dict[str, tuple[Score, Score]]:
    """What each library passes to others, and what it takes from them."""
    names = sorted({name for key in found for name in key})
    others = [pair for pair in found.values() if pair.source != pair.target and pair.counted]
    return {n: (_score(n, "source", others), _score(n, "target", others)) for n in names}


def _score(library: str, side: str, among: Iterable[Pair]) -> Score:
    return Score(library, side, tuple(p for p in among if getattr(p, side) == library))


# -- features --------------------------------------------------------------------------------------


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
