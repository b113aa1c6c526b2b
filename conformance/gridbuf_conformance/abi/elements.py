"""Element types in one vocabulary, whatever interface named them.

A typestr, a buffer format, a DLPack type and a plan's type name all become an `Element`: kind,
bytes, byte order. `agree` compares two of them as rule XA-04's table does.
"""

from __future__ import annotations

import struct
import sys
from dataclasses import dataclass

from ..plan.dtypes import DType
from ..interfaces.dlpack_structs.structs import TYPE_CODES
from ..interfaces.buffer_protocol.pep3118 import Format
from ..interfaces.array_interface.typestr import Typestr

NATIVE_ORDER = "<" if sys.byteorder == "little" else ">"
_OTHER_ORDER = ">" if NATIVE_ORDER == "<" else "<"

TYPESTR_KINDS = {
    "t": "bits",
    "b": "bool",
    "i": "int",
    "u": "uint",
    "f": "float",
    "c": "complex",
    "m": "timedelta",
    "M": "datetime",
    "O": "object",
    "S": "bytes",
    "U": "text",
    "V": "raw",
}
_OPAQUE = frozenset({"raw", "struct", "bytes"})
_NUMBERS = frozenset({"int", "uint", "float", "complex", "bool", "datetime", "timedelta", "text"})


_CODES = {
    ("bool", 1): "?",
    **{("int", size): code for size, code in zip((1, 2, 4, 8), "bhiq")},
    **{("uint", size): code for size, code in zip((1, 2, 4, 8), "BHIQ")},
    **{("float", size): code for size, code in zip((2, 4, 8), "efd")},
    **{("complex", size): code for size, code in zip((8, 16), ("ff", "dd"))},
}
_SHOWN_BYTES = 16


@dataclass(frozen=True)
class Element:
    """`order` is "<", ">" or "|" (no order, or one byte)."""

    kind: str
    itemsize: int
    order: str

    def __str__(self) -> str:
        order = {"<": "little-endian ", ">": "big-endian "}.get(self.order, "")
        return f"{order}{self.kind} of {self.itemsize} bytes"

    def value(self, raw: bytes) -> bool | int | float | complex | None:
        """The value of an element's bytes; None where Python has no such number."""
        code = _CODES.get((self.kind, len(raw)))
        if code is None:
            return None
        numbers = struct.unpack((">" if self.order == ">" else "<") + code, raw)
        value: bool | int | float = numbers[0]
        return complex(*numbers) if self.kind == "complex" else value

    def shown(self, raw: bytes) -> str:
        """The value of an element's bytes; their first in hex where Python has no such number."""
        value = self.value(raw)
        if value is None:
            return f"bytes {raw[:_SHOWN_BYTES].hex()}" if raw else "nothing"
        return repr(value)

    @property
    def is_swapped(self) -> bool:
        """Whether the order is known not to be this machine's."""
        return self.order == _OTHER_ORDER


def of_typestr(typestr: Typestr) -> Element | None:
    """None for bit fields: their elements are not a whole number of bytes."""
    if typestr.itemsize is None:
        return None
    kind = TYPESTR_KINDS[typestr.kind]
    order = "|" if kind in _OPAQUE or kind == "object" or typestr.itemsize <= 1 else typestr.order
    return Element(kind, typestr.itemsize, order)


def of_format(fmt: Format, itemsize: int) -> Element:
    """The element of a buffer whose format is `fmt`; `itemsize` is the buffer's own."""
    return Element(fmt.kind, itemsize, fmt.order)


def of_dlpack(code: int, bits: int, lanes: int) -> Element | None:
    """None where one element is not a whole number of bytes, or the code is unknown."""
    if code not in TYPE_CODES or bits * lanes % 8:
        return None
    kind = TYPE_CODES[code] if lanes == 1 else "raw"
    itemsize = bits * lanes // 8
    return Element(kind, itemsize, NATIVE_ORDER if itemsize > 1 and lanes == 1 else "|")


def of_plan(dtype: DType, byteorder: str) -> Element:
    """What a plan asks for."""
    if dtype.fields:
        kind = "struct"
    elif dtype.name.startswith(("bfloat", "float8")) or dtype.packed_bits is not None:
        kind = "bfloat" if dtype.name == "bfloat16" else dtype.name
    else:
        kind = TYPESTR_KINDS[dtype.kind]
    if not dtype.has_byteorder or kind == "struct":
        return Element(kind, dtype.itemsize, "|")
    return Element(kind, dtype.itemsize, NATIVE_ORDER if byteorder == "native" else _OTHER_ORDER)


def lacks_typestr(element: Element | None) -> bool:
    """Whether a typestr cannot name the type: bfloat16, and floats of 8 bits and less."""
    return element is not None and element.kind not in (*TYPESTR_KINDS.values(), "struct")


def agree(one: Element | None, other: Element | None) -> bool:
    """Whether two interfaces name the same type.

    An opaque type (raw bytes, a record) agrees with every type of its size that has no description
    in that interface: bfloat16 is `<V2` in a typestr, and a record is `V`. An unknown type agrees
    with all.
    """
    if one is None or other is None:
        return True
    if one.itemsize != other.itemsize:
        return False
    if one.kind != other.kind:
        opaque = {one.kind, other.kind} & _OPAQUE
        plain = {one.kind, other.kind} & _NUMBERS
        return bool(opaque) and not plain
    return "|" in (one.order, other.order) or one.order == other.order
