"""The buffer protocol's format strings: struct syntax with the additions of PEP 3118.

`parse` computes the size of one item and, for a format that is one plain number, its kind and byte
order. Prefixes: `@` (the default) has native sizes and alignment, `^` native sizes without
alignment, `= < > !` standard sizes without alignment. Bits (`3t` is a field of three) take up the
bytes that they fill together. Both spellings of complex numbers (`Zd` and CPython 3.14's `D`) are
read.
"""

from __future__ import annotations

import ctypes
import re
import struct
import sys
from dataclasses import dataclass
from functools import lru_cache

_NATIVE_ORDER = "<" if sys.byteorder == "little" else ">"
_LONG_DOUBLE_BYTES = ctypes.sizeof(ctypes.c_longdouble)
_KINDS = {
    **dict.fromkeys("bhilqn", "int"),
    **dict.fromkeys("BHILQN", "uint"),
    **dict.fromkeys("efdg", "float"),
    "?": "bool",
    "O": "object",
    **dict.fromkeys("csp", "bytes"),
    **dict.fromkeys("wu", "text"),
    **dict.fromkeys("P&X", "pointer"),
    "x": "padding",
    "t": "bits",
}
_STANDARD_BYTES = {
    **dict.fromkeys("xcbB?sp", 1),
    **dict.fromkeys("hHeu", 2),
    **dict.fromkeys("iIlLfw", 4),
    **dict.fromkeys("qQd", 8),
}
_NAME = re.compile(r":[^:]*:")
_DIGITS = re.compile(r"[0-9]{1,18}")
_SHAPE = re.compile(r"\(\s*[0-9]{1,18}(?:\s*,\s*[0-9]{1,18})*\s*,?\s*\)")
_PREFIXES = tuple("@=<>!^")
_PLATFORM_LETTERS = frozenset("hHiIlLqQnN")
_DEPTH_LIMIT = 32


class BadFormat(ValueError):
    """Text that is not a buffer format."""


@dataclass(frozen=True)
class Format:
    """What a format says.

    `size_bytes` is one item as written; `padded_bytes` the same with the trailing padding that a C
    compiler adds (only in aligned mode is it ever larger); `aligned_bytes` what it would take if
    every prefix were `@`. `kind` is "int", "uint", "float", "complex", "bool", "bytes", "text",
    "object", "pointer", "bits" or "struct"; `order` is "<", ">" or "|" where order cannot matter.
    """

    size_bytes: int
    padded_bytes: int
    aligned_bytes: int
    kind: str
    order: str
    native_letter: str | None = None
    """The letter, if the format is one integer letter whose size is the platform's to choose."""


@lru_cache(maxsize=512)
def parse(text: str) -> Format:
    """Parses a whole format; raises `BadFormat` naming the place that does not fit the grammar."""
    written = _Parser(text, force_aligned=False)
    items = written.items()
    aligned = _Parser(text, force_aligned=True)
    aligned.items()
    kind, order, letter = _element(items)
    return Format(
        written.offset,
        _rounded_up(written.offset, written.alignment),
        _rounded_up(aligned.offset, aligned.alignment),
        kind,
        order,
        letter,
    )


@dataclass(frozen=True)
class _Item:
    kind: str
    order: str
    letter: str
    native: bool
    repeated: bool


def _element(items: list[_Item]) -> tuple[str, str, str | None]:
    if len(items) != 1 or items[0].repeated or items[0].kind in ("struct", "padding", "bits"):
        return "struct", "|", None
    item = items[0]
    native = item.letter if item.native and item.letter in _PLATFORM_LETTERS else None
    return item.kind, item.order, native


def _rounded_up(count: int, multiple: int) -> int:
    return -(-count // multiple) * multiple


class _Parser:
    """Walks over a format; `offset`: the size so far, `alignment`: the strictest member's."""

    def __init__(self, text: str, *, force_aligned: bool) -> None:
        self.text = text
        self.position = 0
        self.prefix = "@"
        self.force_aligned = force_aligned
        self.offset = 0
        self.alignment = 1
        self.bits = 0
        self.depth = 0

    def items(self, end: str | None = None) -> list[_Item]:
        """Parses up to `end` (or the end of the text) and returns the items of this level."""
        found: list[_Item] = []
        while self.position < len(self.text):
            character = self.text[self.position]
            if character == end:
                self.position += 1
                self._fill_up_bytes()
                return found
            if character.isspace():
                self.position += 1
            elif character in _PREFIXES:
                self.prefix = character
                self.position += 1
            elif character == ":" and found:
                self._take(_NAME, "a name between two colons")
            else:
                found.append(self._item())
        if end is not None:
            raise BadFormat(f"{self.text!r} ends before the closing {end!r}")
        self._fill_up_bytes()
        return found

    def _item(self) -> _Item:
        shape = self._repeat_shape()
        while self.text.startswith(_PREFIXES, self.position):  # ctypes writes "(2,3)<h"
            self.prefix = self.text[self.position]
            self.position += 1
        digits = _DIGITS.match(self.text, self.position)
        if digits:
            self.position = digits.end()
        count = int(digits.group()) if digits else 1
        letter = self._next("an element")
        prefix = self.prefix
        if letter == "t":
            self.bits += count * shape
            return _Item("bits", "|", letter, False, False)
        self._fill_up_bytes()
        size, alignment, kind = self._element(letter)
        self._place(size, alignment, count * shape)
        one_string = letter in "spwu" and shape == 1
        order = self._order(kind, size)
        native = prefix in "@^"
        return _Item(kind, order, letter, native, count * shape != 1 and not one_string)

    def _element(self, letter: str) -> tuple[int, int, str]:
        """(bytes, alignment, kind) of one element that starts with `letter`."""
        if letter == "T":
            return self._record()
        if letter in "&X":
            return self._pointer(letter)
        if letter == "Z":
            part = self._next("the letter after Z")
            if part not in "efdg":
                raise BadFormat(f"{self.text!r} has Z{part}, which is none of Ze, Zf, Zd, Zg")
            return self._complex(part)
        if letter in "FD":
            return self._complex(letter.lower())
        if letter not in _KINDS:
            raise BadFormat(f"{self.text!r} has {letter!r}, which is not a format letter")
        size = self._letter_bytes(letter)
        return size, size, _KINDS[letter]

    def _record(self) -> tuple[int, int, str]:
        self._expect("{")
        self.depth += 1
        if self.depth > _DEPTH_LIMIT:
            raise BadFormat(f"the format nests deeper than {_DEPTH_LIMIT} records")
        outer = (self.offset, self.alignment)
        self.offset, self.alignment = 0, 1
        self.items("}")
        size, alignment = self.offset, self.alignment
        self.offset, self.alignment = outer
        self.depth -= 1
        return _rounded_up(size, alignment), alignment, "struct"

    def _pointer(self, letter: str) -> tuple[int, int, str]:
        if letter == "X":
            self._expect("{")
            closing = self.text.find("}", self.position)
            if closing < 0:
                raise BadFormat(f"{self.text!r} ends before the closing '}}' of X{{")
            self.position = closing + 1
        else:
            pointee = _Parser(self.text, force_aligned=False)
            pointee.position, pointee.depth = self.position, self.depth + 1
            if pointee.depth > _DEPTH_LIMIT:
                raise BadFormat(f"the format nests deeper than {_DEPTH_LIMIT} pointers")
            pointee._item()
            self.position = pointee.position
        return struct.calcsize("P"), struct.calcsize("P"), "pointer"

    def _complex(self, part: str) -> tuple[int, int, str]:
        size = self._letter_bytes(part)
        return 2 * size, size, "complex"

    def _letter_bytes(self, letter: str) -> int:
        if letter == "g":
            return _LONG_DOUBLE_BYTES
        if letter in "OP":
            return struct.calcsize("P")
        if letter in "wu":
            return _STANDARD_BYTES[letter]
        if self.prefix in "@^":
            return struct.calcsize(letter)
        if letter not in _STANDARD_BYTES:
            raise BadFormat(
                f"{self.text!r} uses {letter!r}, which has no standard size, under {self.prefix!r}"
            )
        return _STANDARD_BYTES[letter]

    def _place(self, size: int, alignment: int, count: int) -> None:
        if self.prefix == "@" or self.force_aligned:
            alignment = max(alignment, 1)
            self.offset = _rounded_up(self.offset, alignment)
            self.alignment = max(self.alignment, alignment)
        self.offset += size * count

    def _fill_up_bytes(self) -> None:
        """Bits that were read so far end here: what follows starts at a whole byte."""
        self.offset += -(-self.bits // 8)
        self.bits = 0

    def _order(self, kind: str, size: int) -> str:
        if kind in ("struct", "bytes", "object", "pointer", "padding") or size == 1:
            return "|"
        return {"<": "<", ">": ">", "!": ">"}.get(self.prefix, _NATIVE_ORDER)

    def _repeat_shape(self) -> int:
        if not self.text.startswith("(", self.position):
            return 1
        count = 1
        for extent in _DIGITS.findall(self._take(_SHAPE, "a shape such as (2,3)")):
            count *= int(extent)
        return count

    def _take(self, pattern: re.Pattern[str], wanted: str) -> str:
        match = pattern.match(self.text, self.position)
        if match is None:
            raise BadFormat(f"{self.text!r} needs {wanted} at character {self.position}")
        self.position = match.end()
        return match.group()

    def _expect(self, character: str) -> None:
        if self._next(repr(character)) != character:
            raise BadFormat(f"{self.text!r} needs {character!r} at character {self.position - 1}")

    def _next(self, wanted: str) -> str:
        if self.position >= len(self.text):
            raise BadFormat(f"{self.text!r} ends where {wanted} should be")
        self.position += 1
        return self.text[self.position - 1]
