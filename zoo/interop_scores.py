"""What the score of the scoreboard rests on, as the suite ships it: `interop_documented.toml` and
`interop_causes.toml`.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from fnmatch import fnmatchcase
from typing import Any

from records import FOLDER

from gridbuf_conformance.plugins.scoreboard.arrays import ARRAYS, Array

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

_LAYOUTS = {"transpose": "order", "reverse": "negative", "broadcast": "zero"}


def tables() -> dict[str, Any]:
    """The documented arrays of each library by name, and the causes."""
    rows, causes = (_table(f"interop_{name}.toml") for name in ("documented", "causes"))
    groups = rows.pop("groups")
    return {
        "documented": {name: _row(row, groups) for name, row in rows.items()},
        "causes": [
            {"id": id, "libraries": [row.pop("library")], **row} for id, row in causes.items()
        ],
    }


def _table(name: str) -> dict[str, Any]:
    return tomllib.loads((FOLDER / name).read_text("utf-8"))


def _row(row: Mapping[str, Any], groups: Mapping[str, str]) -> dict[str, Any]:
    sides = {side: row[side] for side in ("makes", "takes") if side in row}
    return {
        "document": row["document"],
        **{
            side: {
                "by": sorted(_words(has["by"], groups)),
                "arrays": [n for n, array in ARRAYS.items() if _has(array, has, groups)],
            }
            for side, has in sides.items()
        },
    }


def _has(array: Array, has: Mapping[str, Any], groups: Mapping[str, str]) -> bool:
    plan = array.plan
    low, high = has.get("ranks", (0, 64))
    unmade = [pattern for pattern in has.get("unmade", "").split("|") if pattern]
    return (
        plan.dtype in _words(has["types"], groups)
        and low <= len(plan.view_map.shape) <= high
        and _layouts(array) <= _words(has.get("layouts", ""), groups)
        and not any(fnmatchcase(word, p) for p in unmade for word in (array.name, plan.dtype))
    )


def _words(text: str, groups: Mapping[str, str]) -> set[str]:
    parts = (
        {word} if word not in groups else _words(groups[word], groups) for word in text.split()
    )
    return set().union(*parts)


def _layouts(array: Array) -> set[str]:
    """What an array has that a new one in row-major order does not."""
    plan, found = array.plan, set()
    for name, *arguments in plan.views:
        is_step = name == "slice" and arguments[-1] != 1
        found.add(_LAYOUTS.get(name, "steps" if is_step else "offset"))
    if plan.layout is not None and [*plan.layout] != sorted(plan.layout):
        found.add("order")
    also = {"swapped": plan.byteorder == "swapped", "read-only": plan.readonly}
    return found | {name for name, holds in also.items() if holds}
