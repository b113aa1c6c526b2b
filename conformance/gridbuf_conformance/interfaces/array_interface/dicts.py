"""Verdicts on the dicts that describe arrays: NumPy's and CUDA's interface share their grammar.

Each takes the dict's described items (`values`); extra requirements of one interface are with
its checks.
"""

from __future__ import annotations

from collections.abc import Callable

from . import typestr
from ...abi.descriptors import Descriptor, Rejected
from ...info import InterfaceInfo, Value
from ...outcomes import Verdict
from ...rules.subject import Subject
from ...rules.verdicts import advise, fail, ok, unsupported


def shown(value: Value | None) -> str:
    """A described value as a reader would write it."""
    if value is None:
        return "no such key"
    if value.t in ("tuple", "list"):
        inner = ", ".join(map(shown, value.items))
        if value.t == "list":
            return f"[{inner}]"
        return f"({inner},)" if len(value.items) == 1 else f"({inner})"
    if value.t == "none":
        return "None"
    if value.t == "dict":
        return "a dict"
    if value.t == "other":
        return f"a {value.type}"
    return repr(value.value)


def is_dict_verdict(info: InterfaceInfo) -> Verdict:
    """Is the attribute's value a dict?"""
    if info.error is not None:
        return fail("a dict", f"the attribute raised {info.error.type}")
    if info.fields is not None:
        return ok()
    value = info.value
    return fail("a dict", "a method" if value.callable else shown(value))


def keys_verdict(fields: dict[str, Value], required: tuple[str, ...]) -> Verdict:
    """Are the required keys there?"""
    missing = [key for key in required if key not in fields]
    if missing:
        return fail(f"keys {', '.join(required)}", f"without {', '.join(missing)}")
    return ok()


def shape_verdict(fields: dict[str, Value]) -> Verdict:
    """Is shape a tuple of non-negative ints?"""
    shape = fields["shape"]
    entries = shape.items
    if shape.t == "tuple" and all(e.t == "int" and e.value >= 0 for e in entries):
        return ok()
    return fail("a tuple of non-negative Python ints", shown(shape))


def typestr_verdict(fields: dict[str, Value]) -> Verdict:
    """Does typestr have the grammar?"""
    value = fields["typestr"]
    if value.t != "str":
        return fail("a str such as '<f8'", shown(value))
    try:
        typestr.parse(value.value)
    except typestr.BadTypestr as error:
        return fail("byte order, kind letter, digits: '<f8'", str(error))
    return ok()


def size_verdict(fields: dict[str, Value]) -> Verdict:
    """Is the size one that the kind has?"""
    parsed = typestr.parse(fields["typestr"].value)
    sizes = typestr.legal_sizes(parsed.kind)
    if sizes is None or parsed.number in sizes:
        return ok()
    if (parsed.kind, parsed.number) == ("f", 1):
        return advise("kind 'f' with a size that every reader knows", shown(fields["typestr"]))
    return fail(f"kind {parsed.kind!r} with one of the sizes {sizes}", shown(fields["typestr"]))


def strides_verdict(fields: dict[str, Value]) -> Verdict:
    """Is strides absent, None or a tuple of ndim ints?"""
    strides = fields.get("strides")
    if strides is None or strides.t == "none":
        return ok()
    ndim = len(fields["shape"].items)
    entries = strides.items
    if strides.t == "tuple" and len(entries) == ndim and all(e.t == "int" for e in entries):
        return ok()
    return fail(f"None or a tuple of {ndim} ints", shown(strides))


def descr_verdict(fields: dict[str, Value]) -> Verdict:
    """Is descr well formed, and of the size of a "V" typestr?"""
    descr = fields.get("descr")
    if descr is None or descr.t == "none":
        return unsupported("no descr")
    parsed = typestr.parse(fields["typestr"].value)
    try:
        total = typestr.descr_bytes(descr)
    except typestr.BadTypestr as error:
        return fail("a list of (name, type[, repeat]) tuples", str(error))
    if parsed.kind == "V" and total != parsed.itemsize:
        return fail(f"fields of {parsed.itemsize} bytes in total", f"{total} bytes")
    return ok()


def mask_verdict(info: InterfaceInfo, read: Callable[[InterfaceInfo], Descriptor]) -> Verdict:
    """Is the mask None, or an object with the same interface that broadcasts to the shape?"""
    fields = info.fields or {}
    mask = fields.get("mask")
    if mask is None or mask.t == "none":
        return unsupported("no mask")
    try:
        array = read(info.mask_interface or InterfaceInfo())
    except Rejected as rejection:
        return fail("None or an object with this interface", str(rejection))
    shape = [extent.value for extent in fields["shape"].items]
    aligned = list(zip(reversed(array.shape), reversed(shape)))
    if array.ndim <= len(shape) and all(m in (1, extent) for m, extent in aligned):
        return ok()
    return fail(f"a mask that broadcasts to {tuple(shape)}", f"a mask of shape {array.shape}")


def byte_order_verdict(s: Subject, interface: str, fields: dict[str, Value]) -> Verdict:
    """Is the declared byte order the one in memory, by the content that the plan asked for?"""
    if s.expected_walk is None or interface not in s.walks:
        return unsupported("needs a plan with known content, and memory that can be read")
    declared = s.arrays[interface].element if interface in s.arrays else None
    asked = s.asked_element
    if asked is None or declared is None or "|" in (declared.order, asked.order):
        return ok("the order of one byte, or of opaque elements, cannot be wrong")
    if declared.itemsize != asked.itemsize or declared.kind != asked.kind:
        return unsupported("the type is another one than the plan's")
    held, wanted = bytes.fromhex(s.walks[interface]), bytes.fromhex(s.expected_walk)
    reversed_wanted = s.asked.dtype_info.swapped(wanted)
    if wanted == reversed_wanted:
        return ok("the content reads the same in both orders")
    in_memory = {wanted: asked.order, reversed_wanted: _flipped(asked.order)}.get(held)
    if in_memory is None or in_memory == declared.order:
        return ok()
    hint = (
        "; for one order only, Capabilities(byteorders=)" if s.asked.byteorder == "swapped" else ""
    )
    return fail(f"typestr with {in_memory!r}, the order in memory{hint}", shown(fields["typestr"]))


def _flipped(order: str) -> str:
    return "<" if order == ">" else ">"
