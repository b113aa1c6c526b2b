"""What each interface calls each element type: a table that can disagree with the judge's.

Written from the published type tables, not from the suite's code: a common mistake would otherwise
pass.
"""

from __future__ import annotations

import sys
from typing import NamedTuple

_ORDER, _SWAPPED_ORDER = "<>" if sys.byteorder == "little" else "><"


class Element(NamedTuple):
    """`kind` and `itemsize` as in a typestr; `format` is `Py_buffer`'s; `dlpack` (code, bits).

    `fields` of a record: (name, kind and bytes of one number, repeat count or shape); padding has
    no name. In its `format`, `{}` means the byte order of the numbers that have one.
    """

    kind: str
    itemsize: int
    format: str
    dlpack: tuple[int, int] | None
    fields: tuple[tuple[str, str, int | tuple[int, ...]], ...] = ()

    def typestr(self, swapped: bool) -> str:
        """The array interface's typestr; `|` where no byte order exists."""
        has_order = self.itemsize > 1 and self.kind != "V"
        return f"{_order(swapped) if has_order else '|'}{self.kind}{self.itemsize}"

    def descr(self, swapped: bool) -> list[tuple]:
        """The array interface's `descr`."""
        if not self.fields:
            return [("", self.typestr(swapped))]
        order = _order(swapped)
        typed = [
            (name, ("|" if kind[0] == "V" or kind[1:] == "1" else order) + kind, n)
            for name, kind, n in self.fields
        ]
        return [
            (name, kind) if n == 1 else (name, kind, n if isinstance(n, tuple) else (n,))
            for name, kind, n in typed
        ]

    def buffer_format(self, swapped: bool) -> str:
        """The buffer protocol's format; an explicit prefix only where the order is not native."""
        if self.fields:
            return self.format.format(_order(swapped))
        return (_SWAPPED_ORDER if swapped else "") + self.format


def _order(swapped: bool) -> str:
    return _SWAPPED_ORDER if swapped else _ORDER


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
    "struct": Element(
        "V", 13, "T{{b:a:{}d:b:(2)h:c:}}", None, (("a", "i1", 1), ("b", "f8", 1), ("c", "i2", 2))
    ),
    "padded": Element(
        "V",
        32,
        "T{{b:a:7x{}d:b:(2,3)h:c:4x}}",
        None,
        (("a", "i1", 1), ("", "V7", 1), ("b", "f8", 1), ("c", "i2", (2, 3)), ("", "V4", 1)),
    ),
}
