"""The numbers that a look at a result must show (`measure.eyes`): the values of the plan."""

from __future__ import annotations

import math
import struct
import sys
from math import prod

from ..abi.descriptors import sample_indices
from ..info import LookInfo
from ..plan import Plan
from . import Export
from .array_repr import tolerance_of

_ELEMENTS_LIMIT = 256
_PRINTED = "repr(x)"
_SUM = "x + 0"
_FLOATS = {2: "e", 4: "f", 8: "d"}
_RELATIVE = 1e-6

Number = bool | int | float | complex


def can_be_compared(export: Export) -> bool:
    """Whether the elements of an export are few, and numbers that Python has."""
    kind, shape = export.dtype_info, export.view_map.shape
    is_plain = not export.variant.is_retyped and export.variant.described(shape) == shape
    is_number = kind.packed_bits is None and not kind.fields and kind.kind in "biufc"
    if export.variant.expects == "error" or not (is_plain and is_number):
        return False
    has_size = kind.itemsize in {"c": (8, 16), "f": (2, 4, 8)}.get(kind.kind, (kind.itemsize,))
    return has_size and 0 < prod(shape) <= _ELEMENTS_LIMIT


def mistake(export: Export, name: str, look: LookInfo) -> tuple[str, str] | None:
    """(expected, actual) of the first difference between a look and the plan; None if none."""
    if look.died is not None:
        return f"values, by {name}", f"the process died of {look.died}"
    shape = list(export.view_map.shape)
    if look.shape is None or look.values is None:
        return None
    if look.shape != shape:
        # printed brackets may be those of anything
        return None if name == _PRINTED else (f"shape {shape}", f"shape {look.shape}, by {name}")
    for index, text in zip(sample_indices(tuple(shape), _ELEMENTS_LIMIT), look.values):
        expected = number(export, export.viewed_element_bytes(index))
        agrees = expected is None or _agrees(expected, text, name)
        if not (agrees or _is_bits(export, index, text)):
            return f"{expected!r} at element {list(index)}", f"{text}, by {name}"
    return None


def number(plan: Plan, raw: bytes) -> Number | None:
    """The value of the bytes of an element of a plan; None if Python has no such number."""
    kind = plan.dtype_info
    is_little = (sys.byteorder == "little") == (plan.byteorder == "native")
    if kind.kind == "b":
        return bool(raw[0])
    if kind.kind in "iuMm":
        return int.from_bytes(raw, "little" if is_little else "big", signed=kind.kind != "u")
    order = "<" if is_little else ">"
    if kind.name == "bfloat16":
        return float(struct.unpack(order + "f", b"\0\0" + raw if is_little else raw + b"\0\0")[0])
    form = _FLOATS.get(len(raw) // (2 if kind.kind == "c" else 1))
    if form is None or kind.kind not in "fc":
        return None
    if kind.kind == "c":
        return complex(*struct.unpack(order + 2 * form, raw))
    return float(struct.unpack(order + form, raw)[0])


def _is_bits(export: Export, index: tuple[int, ...], text: str) -> bool:
    """Whether a text is a bfloat16's bits: libraries without numbers for it show uint16."""
    raw = export.viewed_element_bytes(index)
    return export.dtype_info.name == "bfloat16" and text == str(int.from_bytes(raw, sys.byteorder))


def _agrees(expected: Number, text: str, name: str) -> bool:
    """Whether a text is the number; in doubt it is."""
    try:
        actual: Number = int(text) if text.lstrip("+-").isdigit() else complex(text)
    except ValueError:
        if text not in ("True", "False"):
            return True
        actual = text == "True"
    if actual == expected:
        return True
    if isinstance(expected, int) and isinstance(actual, int):
        return False
    given, wanted = complex(actual), complex(expected)
    if name == _SUM and not (math.isfinite(given.real) and math.isfinite(given.imag)):
        return True  # the sum may be of a shorter type
    allowed = tolerance_of(text) if name == _PRINTED else 0.0
    return abs(given - wanted) <= allowed + _RELATIVE * abs(wanted)
