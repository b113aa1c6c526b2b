"""What each interface calls each element type: the zoo's own table, so that it can disagree with the judge's.

Written from the published type tables, not from the suite's code: a common mistake would otherwise pass.
"""

from __future__ import annotations

import sys
from typing import NamedTuple

__all__ = ["ELEMENTS", "Element"]

_ORDER, _SWAPPED_ORDER = "<>" if sys.byteorder == "little" else "><"


class Element(NamedTuple):
    """`kind` and `itemsize` as in a typestr; `format` as in `Py_buffer`; `dlpack` is (code, bits) or None."""

    kind: str
    itemsize: int
    format: str | None
    dlpack: tuple[int, int] | None

    def typestr(self, swapped: bool) -> str:
        """The array interface's typestr; `|` where no byte order exists."""
        order = "|" if self.itemsize == 1 else _SWAPPED_ORDER if swapped else _ORDER
        return f"{order}{self.kind}{self.itemsize}"

    def buffer_format(self, swapped: bool) -> str:
        """The buffer protocol's format; an explicit prefix only where the order is not native."""
        return (_SWAPPED_ORDER if swapped else "") + self.format


ELEMENTS = {
    "float64": Element("f", 8, "d", (2, 64)),
    "float32": Element("f", 4, "f", (2, 32)),
    "float16": Element("f", 2, "e", (2, 16)),
    "int64": Element("i", 8, "q", (0, 64)),
    "int32": Element("i", 4, "i", (0, 32)),
    "int16": Element("i", 2, "h", (0, 16)),
    "int8": Element("i", 1, "b", (0, 8)),
    "uint64": Element("u", 8, "Q", (1, 64)),
    "uint32": Element("u", 4, "I", (1, 32)),
    "uint16": Element("u", 2, "H", (1, 16)),
    "uint8": Element("u", 1, "B", (1, 8)),
    "bool": Element("b", 1, "?", (6, 8)),
    "complex64": Element("c", 8, "Zf", (5, 64)),
    "complex128": Element("c", 16, "Zd", (5, 128)),
}
