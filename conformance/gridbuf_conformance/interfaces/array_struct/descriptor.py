"""The descriptor of a `PyArrayInterface` struct."""

from __future__ import annotations

from collections.abc import Callable

from ...abi import elements
from ...abi.descriptors import Descriptor, Rejected, entries_of
from ...abi.elements import Element
from ...info import ArrayInfo, StructInfo


def of_array_struct(info: StructInfo) -> Descriptor:
    """The descriptor of a `PyArrayInterface`; raises `Rejected` with the broken AS rule."""
    if not info.capsule or info.name is not None or info.unmapped:
        raise Rejected("AS-01", "no unnamed capsule with a struct behind it")
    if info.two != 2:
        raise Rejected("AS-02", "the first field is not 2")
    if info.nd < 0 or info.itemsize <= 0:
        raise Rejected("AS-03", "nd or itemsize out of range")
    kind = elements.TYPESTR_KINDS.get(info.typekind)
    if kind is None:
        raise Rejected("AS-03", f"kind {info.typekind!r} is unknown")
    # A clear bit claims nothing: without 0x200 the byte order is not known.
    order = elements.NATIVE_ORDER if info.flags & 0x200 and info.itemsize > 1 else "|"
    element = None if kind == "bits" else Element(kind, info.itemsize, order)
    shape = entries_of(info.shape, info.nd, "AS-04")
    strides = entries_of(info.strides, info.nd, "AS-04")
    if any(extent < 0 for extent in shape) or (not info.data and 0 not in shape):
        raise Rejected("AS-04", "negative extent, or no memory")
    readonly = not info.flags & 0x400
    return Descriptor("AS", info.data, shape, strides, info.itemsize, element, readonly)


def readers(info: ArrayInfo) -> dict[str, Callable[[], Descriptor]]:
    """The interface, if the object has it, with the function that reads or rejects what it says."""
    struct = info.struct
    if struct is None or struct.error is not None:
        return {}
    return {"AS": lambda: of_array_struct(struct)}
