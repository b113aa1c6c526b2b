"""The type strings of the array interface: grammar, sizes, the `descr` of structured types."""

from __future__ import annotations

import re
from dataclasses import dataclass

from ...info import Value
from ...abi.memory import POINTER_BYTES

_GRAMMAR = re.compile(r"([<>|])([tbiufcmMOSUV])([0-9]{1,18})(\[[0-9]*[a-zA-Zμ]+\])?")


class BadTypestr(ValueError):
    """Text that is not a typestr, or a `descr` that is not a description."""


@dataclass(frozen=True)
class Typestr:
    """`order` is "<", ">" or "|"; `number` is the digits' value, `itemsize` bytes of an element.

    A bit field ("t") counts bits and has no whole number of bytes: its `itemsize` is None. NumPy's
    "U" counts characters of four bytes where the spec speaks of bytes; NumPy is followed. The unit
    that NumPy appends to "m" and "M" is allowed for those two kinds.
    """

    order: str
    kind: str
    number: int
    unit: str

    @property
    def itemsize(self) -> int | None:
        if self.kind == "t":
            return None
        return 4 * self.number if self.kind == "U" else self.number


def parse(text: str) -> Typestr:
    """The parts of a typestr; raises `BadTypestr` naming what does not fit the grammar."""
    match = _GRAMMAR.fullmatch(text)
    if match is None:
        raise BadTypestr(
            f"{text!r} is not one byte-order character (<, > or |), one kind letter of "
            "tbiufcmMOSUV, and digits"
        )
    order, kind, digits, unit = match.groups()
    if unit and kind not in "mM":
        raise BadTypestr(f"{text!r} has a unit, which only m and M can have")
    return Typestr(order, kind, int(digits), unit or "")


def legal_sizes(kind: str) -> tuple[int, ...] | None:
    """The sizes in bytes that a kind can have, or None where any is legal."""
    return {
        "b": (1,),
        "i": (1, 2, 4, 8),
        "u": (1, 2, 4, 8),
        "f": (2, 4, 8, 10, 12, 16),
        "c": (4, 8, 16, 20, 24, 32),
        "m": (8,),
        "M": (8,),
        "O": (POINTER_BYTES,),
    }.get(kind)


def descr_bytes(descr: Value, depth: int = 0) -> int:
    """Bytes of one element by its `descr`: a list of (name, type or nested list[, repeat shape]).

    `descr` is in the described form of `values`: lists and tuples are told apart by their tag.
    Raises `BadTypestr` naming the entry that has another form.
    """
    if descr.t != "list" or depth > 32:
        raise BadTypestr(f"descr must be a list of tuples, not {_shown(descr)}")
    return sum(_entry_bytes(entry, depth) for entry in descr.items)


def _entry_bytes(entry: Value, depth: int) -> int:
    if entry.t != "tuple" or len(entry.items) not in (2, 3):
        raise BadTypestr(f"an entry of descr must be a 2- or 3-tuple, not {_shown(entry)}")
    _, kind, *repeat = entry.items
    if kind.t == "str":
        itemsize = parse(kind.value).itemsize
        if itemsize is None:
            raise BadTypestr(f"{kind.value!r} counts bits and has no whole number of bytes")
    else:
        itemsize = descr_bytes(kind, depth + 1)
    return itemsize * (_repeat_count(repeat[0]) if repeat else 1)


def _repeat_count(repeat: Value) -> int:
    extents = repeat.items if repeat.t == "tuple" else [repeat]
    count = 1
    for extent in extents:
        if extent.t != "int" or extent.value < 0:
            raise BadTypestr(f"a repeat shape must hold integers >= 0, not {_shown(extent)}")
        count *= extent.value
    return count


def _shown(value: Value) -> str:
    return value.t
