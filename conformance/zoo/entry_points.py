"""The documented entry points of the libraries, and which library a failure of a target belongs to.

`entry_points.toml` has the list. Some libraries leave the reading of an exporter to another one (`through`), as most do to
NumPy. A rule that the other library fails too on that side is the other library's.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from records import FOLDER, RESULTS, read_json

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

__all__ = ["EntryPoint", "compared", "elsewhere", "load", "summary"]


@dataclass(frozen=True)
class EntryPoint:
    """One documented entry point: the targets that drive it, or the reason why none does."""

    library: str
    side: str
    name: str
    link: str
    targets: tuple[str, ...] = ()
    through: str = ""
    reason: str = ""


def _tables() -> dict[str, Any]:
    return dict(tomllib.loads((FOLDER / "entry_points.toml").read_text("utf-8")))


def compared() -> list[str]:
    """The libraries whose lists were compared with the documentation."""
    return list(_tables()["compared"])


def load() -> list[EntryPoint]:
    """Every entry point. Raises TypeError, with the key, for one that has an unknown key."""
    return [
        EntryPoint(
            library["name"],
            side,
            link=library["documentation"] + row.pop("see", ""),
            targets=tuple(row.pop("targets", ())),
            **row,
        )
        for library in _tables()["library"]
        for side in ("producer", "consumer")
        for row in library.get(f"{side}s", ())
    ]


@lru_cache(maxsize=1)
def elsewhere() -> frozenset[tuple[str, str, str]]:
    """The failures in the records, as (side, target, rule), that belong to the library that reads for the target."""
    readers = {(e.side, target): e.through for e in load() if e.through for target in e.targets}
    failures = [
        (record["library"], ran["side"], ran["target"], rule)
        for record in map(read_json, RESULTS.glob("*.json"))
        for ran in record.get("targets", ())
        for rule in ran.get("failures", {})
    ]
    own = {(library, side, rule) for library, side, _, rule in failures}
    return frozenset(
        (side, target, rule)
        for _, side, target, rule in failures
        if (readers.get((side, target)), side, rule) in own
    )


def summary() -> dict[str, Any]:
    """What the page says of the list."""
    points = load()
    driven = [point for point in points if point.targets]
    return {
        "listed": len(points),
        "driven": len(driven),
        "through": sum(bool(point.through) for point in driven),
        "undriven": [point for point in points if point.reason],
        "compared": compared(),
    }
