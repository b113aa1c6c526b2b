"""The descriptor of an `__array_interface__` dict, and what dicts of its kind have in common."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from math import prod

from ...abi import elements
from ...abi.descriptors import SIZE_LIMIT_BYTES, Descriptor, Rejected, c_strides
from ...info import NONE, ArrayInfo, InterfaceInfo, RequestInfo, Value
from ..buffer_protocol.descriptor import simple_view
from . import typestr


def of_array_interface(info: InterfaceInfo, buffer: Mapping[str, RequestInfo] | None) -> Descriptor:
    """The descriptor of an `__array_interface__` dict; `buffer` is info on the object's own buffer.

    Raises `Rejected` naming the AI rule that the dict breaks.
    """
    fields = present(info.fields, ("shape", "typestr", "version"), _AI)
    raw = fields.get("data", NONE).t != "tuple"
    array = of_fields("AI", fields, _AI, lambda: _interface_data(info, fields, buffer))
    return replace(array, is_raw=raw)


@dataclass(frozen=True)
class DictRules:
    """Which rule each mistake in an array interface dict breaks."""

    is_dict: str
    keys: str
    shape: str
    grammar: str
    sizes: str
    bits: str
    total: str
    strides: str
    data: str
    address: str


_AI = DictRules(
    *("AI-01", "AI-02", "AI-03", "AI-06", "AI-07", "AI-10", "AI-05", "AI-21", "AI-14", "AI-20")
)


def present(
    fields: dict[str, Value] | None, keys: tuple[str, ...], ids: DictRules
) -> dict[str, Value]:
    if fields is None:
        raise Rejected(ids.is_dict, "the attribute is not a dict")
    for key in keys:
        if key not in fields:
            raise Rejected(ids.keys, f"the key {key!r} is missing")
    return fields


def of_fields(
    interface: str,
    fields: dict[str, Value],
    ids: DictRules,
    data: Callable[[], tuple[int, bool]],
) -> Descriptor:
    """What the array interfaces share: shape, typestr, strides, the memory that `data` names."""
    shape = _extents(fields["shape"], ids.shape)
    parsed = _typestr(fields["typestr"], ids)
    itemsize = parsed.itemsize
    if itemsize is None:
        raise Rejected(ids.bits, "elements are bits")
    if prod(shape) * itemsize > SIZE_LIMIT_BYTES:
        raise Rejected(ids.total, "the total size cannot be represented")
    strides = _interface_strides(fields.get("strides"), shape, itemsize, ids.strides)
    address, readonly = data()
    if not address and prod(shape) * itemsize:
        raise Rejected(ids.address, "the address is 0")
    element = elements.of_typestr(parsed)
    return Descriptor(interface, address, shape, strides, itemsize, element, readonly)


def _extents(value: Value, rule: str) -> tuple[int, ...]:
    if value.t != "tuple" or any(item.t != "int" or item.value < 0 for item in value.items):
        raise Rejected(rule, "shape is not a tuple of non-negative integers")
    return tuple(item.value for item in value.items)


def _typestr(value: Value, ids: DictRules) -> typestr.Typestr:
    if value.t != "str":
        raise Rejected(ids.grammar, "typestr is not a string")
    try:
        parsed = typestr.parse(value.value)
    except typestr.BadTypestr as error:
        raise Rejected(ids.grammar, str(error)) from None
    sizes = typestr.legal_sizes(parsed.kind)
    if sizes is not None and parsed.number not in sizes:
        raise Rejected(ids.sizes, f"{parsed.number} is not a size of kind {parsed.kind}")
    return parsed


def _interface_strides(
    value: Value | None, shape: tuple[int, ...], itemsize: int, rule: str
) -> tuple[int, ...]:
    if value is None or value.t == "none":
        return c_strides(shape, itemsize)
    if value.t != "tuple" or len(value.items) != len(shape):
        raise Rejected(rule, "strides is not a tuple of ndim integers")
    if any(item.t != "int" for item in value.items):
        raise Rejected(rule, "strides holds something else than integers")
    return tuple(item.value for item in value.items)


def _interface_data(
    info: InterfaceInfo, fields: dict[str, Value], buffer: Mapping[str, RequestInfo] | None
) -> tuple[int, bool]:
    data = fields.get("data", NONE)
    if data.t == "tuple":
        return address_and_flag(data, _AI)
    own = data.t == "none"
    simple = simple_view(buffer if own else info.data_buffer)
    if simple is None:
        raise Rejected("AI-17" if own else "AI-16", "no buffer of plain bytes can be had")
    offset = fields.get("offset", Value("int", 0))
    if offset.t != "int" or offset.value < 0:
        raise Rejected("AI-18", "offset is not a non-negative integer")
    return simple.buf + offset.value, bool(simple.readonly)


def address_and_flag(data: Value, ids: DictRules) -> tuple[int, bool]:
    items = data.items if data.t == "tuple" else []
    if len(items) != 2 or items[0].t != "int" or items[0].value < 0:
        raise Rejected(ids.data, "data is no (address, read-only flag)")
    return items[0].value, _truth(items[1])


def _truth(value: Value) -> bool:
    if value.t in ("int", "bool", "str", "float", "bytes"):
        return bool(value.value)
    return value.t != "none" and value.length != 0


def readers(info: ArrayInfo) -> dict[str, Callable[[], Descriptor]]:
    """The interface, if the object has it, with the function that reads or rejects what it says."""
    dictionary = info.ai
    if dictionary is None or dictionary.error is not None:
        return {}
    return {"AI": lambda: of_array_interface(dictionary, info.pb)}
