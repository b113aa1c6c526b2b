"""The numbers of a printed array: nested lists of their texts.

Libraries print arrays in their own ways. Only the innermost facts are used: brackets nest as the
axes do, and numbers are separated by commas or blanks. Text of any other form has no values here.
"""

from __future__ import annotations

import re
from typing import Any

_TOKEN = re.compile(r"[\[\]]|[^\s,\[\]]+")
_SHAPE = re.compile(r"\w\[[^\[\]]*\]")
"""Brackets directly behind a word have a shape: `float64[2, 3]`."""
_NUMBER = re.compile(r"[-+]?(\d+\.?\d*|\.\d+)([eE][-+]?\d+)?$|True$|False$|nan$|[-+]?inf$")


def values(text: str) -> list[Any] | None:
    """The last group of brackets in a text as nested lists of texts.

    None where the group has parts that are not numbers, such as the dots of an abbreviation. Words
    around the group, such as a shape or the name of the type, are ignored.
    """
    found: list[Any] | None = None
    stack: list[list[Any]] = []
    for token in _TOKEN.findall(_SHAPE.sub(" ", text)):
        if token == "[":
            stack.append([])
        elif token == "]":
            if not stack:
                return None
            group = stack.pop()
            if stack:
                stack[-1].append(group)
            else:
                found = group
        elif stack:
            stack[-1].append(token)
    if stack or found is None or not _has_only_numbers(found):
        return None
    return found


def _has_only_numbers(group: list[Any]) -> bool:
    return all(
        _has_only_numbers(part) if isinstance(part, list) else _NUMBER.match(part) for part in group
    )


def tolerance_of(text: str) -> float:
    """One unit of the last digit that is printed."""
    mantissa, _, exponent = text.lower().partition("e")
    decimals = len(mantissa.partition(".")[2])
    return float(10.0 ** (int(exponent or 0) - decimals))
