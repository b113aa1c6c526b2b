"""Info on the attributes: which interfaces an object has, its array interface dict and struct."""

from __future__ import annotations

from functools import partial
from typing import Any

from ..abi.arraystruct import announced_descr, read_array_struct
from ..abi.memory import Memory
from ..info import (
    DataInterfaceInfo,
    EntryInfo,
    ErrorInfo,
    HookInfo,
    InterfaceInfo,
    NamingInfo,
    ProbeInfo,
    RenamedInfo,
    StructInfo,
    Value,
)
from ..info.steps import enter
from ..info.values import attempt, describe
from .buffer import simple_request

__all__ = [
    "HOOKS",
    "PROBED",
    "array_attribute_info",
    "data_interface_info",
    "call_hook",
    "domain_starts",
    "gt4py_info",
    "interface_info",
    "naming_info",
    "probe_info",
    "struct_info",
]

PROBED = (
    "__array_interface__",
    "__array_struct__",
    "__cuda_array_interface__",
    "__dlpack__",
    "__dlpack_device__",
    "__gt_data_interface__",
    "__gt_dims__",
    "__gt_origin__",
    "__buffer__",
    "__dlpack_c_exchange_api__",
)
"""The attributes by which consumers find out which interfaces an object has."""


def probe_info(obj: Any) -> dict[str, ProbeInfo]:
    """What `hasattr` answered for each name of `PROBED`."""
    info = {}
    for name in PROBED:
        enter(f"probe:{name}")
        present, error = attempt(partial(hasattr, obj, name))
        info[name] = ProbeInfo(bool(present), error)
    return info


_STEPS = {"__array_interface__": "ai", "__cuda_array_interface__": "cai"}


def interface_info(
    obj: Any, memory: Memory, *, attribute: str = "__array_interface__", with_mask: bool = True
) -> tuple[InterfaceInfo, Any]:
    """An array interface dict read once: (info, the value itself).

    The value has to live while its address is used: some dicts own the memory that they describe (AI-28).
    """
    enter(f"{_STEPS[attribute]}:getter")
    value, error = attempt(lambda: getattr(obj, attribute))
    if error is not None:
        return InterfaceInfo(error=error), None
    info = InterfaceInfo(value=describe(value))
    if not isinstance(value, dict):
        return info, value
    info.fields, error = attempt(lambda: _described(value))
    if error is not None:
        return InterfaceInfo(error=error), value
    data = value.get("data")
    if attribute == "__array_interface__" and data is not None and not isinstance(data, tuple):
        info.data_buffer = {"SIMPLE": simple_request(data, memory)}
    mask = value.get("mask")
    if with_mask and mask is not None:
        info.mask_interface, _ = interface_info(mask, memory, attribute=attribute, with_mask=False)
    return info, value


def _described(value: dict[Any, Any]) -> dict[str, Value]:
    return {str(key): describe(item) for key, item in value.items()}


HOOKS = ("acquire", "touch", "release")
"""The functions of a data interface's entry, in the order in which a consumer calls them."""


def data_interface_info(obj: Any) -> tuple[DataInterfaceInfo, Any]:
    """(info on `__gt_data_interface__`, the value itself). Hooks are called by `call_hook`."""
    enter("gt:data-interface")
    value, error = attempt(lambda: obj.__gt_data_interface__)
    if error is not None:
        return DataInterfaceInfo(error=error), None
    info = DataInterfaceInfo(value=describe(value))
    if type(value) is not dict:
        return info, value
    info.keys = [describe(key) for key in value]
    info.entries, error = attempt(
        lambda: {str(key): _entry_info(entry) for key, entry in value.items()}
    )
    return (info, value) if error is None else (DataInterfaceInfo(error=error), None)


def _entry_info(entry: Any) -> EntryInfo:
    if not isinstance(entry, dict):
        return EntryInfo(value=describe(entry))
    given = {hook: entry[hook] for hook in HOOKS if entry.get(hook) is not None}
    hooks = {hook: HookInfo(callable(function)) for hook, function in given.items()}
    return EntryInfo(fields=_described(entry), hooks=hooks)


def call_hook(key: str, hook: str, function: Any) -> ErrorInfo | None:
    """What calling one hook without arguments raised."""
    enter(f"gt:hook={hook} of {key}")
    _, error = attempt(function)
    return error


def struct_info(obj: Any, memory: Memory) -> tuple[StructInfo, Any]:
    """(info on `__array_struct__`, its capsule): the capsule has to live while its address is used."""
    enter("as:getter")
    capsule, error = attempt(lambda: obj.__array_struct__)
    if error is not None:
        return StructInfo(error=error), None
    enter("as:struct")
    info = read_array_struct(capsule, memory)
    if info.has_descr_pointer:
        info.descr = describe(announced_descr(capsule, memory))
    return info, capsule


def gt4py_info(obj: Any) -> dict[str, Value]:
    """The attributes of GT4Py's protocol and of `gt4py.next` fields that the allocation rules read."""
    info = {}
    for name in ("__gt_dims__", "__gt_origin__", "default_origin"):
        enter(f"gt:{name}")
        value, error = attempt(partial(getattr, obj, name, None))
        info[name] = Value("error", error=error) if error is not None else describe(value)
    return info


def domain_starts(obj: Any) -> list[Value] | None:
    """Where the ranges of a `gt4py.next` field's domain start; None for other objects."""
    enter("gt:domain")
    starts: list[Value] | None
    starts, _ = attempt(lambda: [describe(span.start) for span in obj.domain.ranges])
    return starts


def naming_info(obj: Any) -> NamingInfo | None:
    """How the accessor of a named array (xarray's `DataArray`) deals with names (GT-11); None for other objects.

    `renamed` has the names after two dimensions have exchanged theirs (one: got another).
    """
    kind = type(obj)
    if not (hasattr(kind, "rename") and hasattr(kind, "dims") and hasattr(kind, "data")):
        return None
    enter("gt:rename")
    info: NamingInfo
    info, error = attempt(lambda: _naming(obj))
    return None if error is not None else info


def _naming(obj: Any) -> NamingInfo:
    names = list(obj.dims)
    own = getattr(obj.data, "__gt_data_interface__", None)
    entries = own.values() if isinstance(own, dict) else ()
    has_names = any(entry.get("dims") is not None for entry in entries)
    info = NamingInfo(describe(tuple(names)), has_names)
    if names:
        other = names[1] if len(names) > 1 else f"not_{names[0]}"
        renamed = obj.rename({names[0]: other, **({other: names[0]} if len(names) > 1 else {})})
        value, error = attempt(lambda: renamed.__gt_data_interface__)
        info.renamed = RenamedInfo(error=error)
        if error is None:
            shown = [describe(entry.get("dims")) for entry in value.values()]
            info.renamed = RenamedInfo(wanted=describe(tuple(renamed.dims)), shown=shown)
    return info


def array_attribute_info(obj: Any, memory: Memory) -> InterfaceInfo | None:
    """What `__array__()` returns, by its array interface; None where the object has no such method.

    Only asked of objects without buffer and array interface, for which it is the way to `numpy.asarray`.
    """
    enter("gt:__array__")
    method, error = attempt(lambda: getattr(type(obj), "__array__", None))
    if error is not None or method is None:
        return None
    array, error = attempt(obj.__array__)
    if error is not None:
        return InterfaceInfo(error=error)
    return interface_info(array, memory)[0]
