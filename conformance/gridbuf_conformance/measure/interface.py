"""Info on the attributes: which interfaces an object has, its array interface dict and struct."""

from __future__ import annotations

from functools import partial
from typing import Any

from ..interfaces.array_struct.struct import announced_descr, read_array_struct
from ..abi.memory import Memory
from ..info import (
    InterfaceInfo,
    ProbeInfo,
    StructInfo,
    Value,
)
from ..info.steps import Stage, enter
from ..info.values import attempt, describe
from ..interfaces.buffer_protocol.measure import simple_request

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
        enter(Stage.PROBE, f"{name}")
        present, error = attempt(partial(hasattr, obj, name))
        info[name] = ProbeInfo(bool(present), error)
    return info


def interface_info(
    obj: Any,
    memory: Memory,
    *,
    attribute: str = "__array_interface__",
    stage: Stage = Stage.AI,
    with_mask: bool = True,
) -> tuple[InterfaceInfo, Any]:
    """An array interface dict read once: (info, the value itself).

    The value has to live while its address is used: some dicts own the memory that they describe
    (AI-28).
    """
    enter(stage, "getter")
    value, error = attempt(lambda: getattr(obj, attribute))
    if error is not None:
        return InterfaceInfo(error=error), None
    info = InterfaceInfo(value=describe(value))
    if not isinstance(value, dict):
        return info, value
    info.fields, error = attempt(lambda: described(value))
    if error is not None:
        return InterfaceInfo(error=error), value
    data = value.get("data")
    if attribute == "__array_interface__" and data is not None and not isinstance(data, tuple):
        info.data_buffer = {"SIMPLE": simple_request(data, memory)}
    mask = value.get("mask")
    if with_mask and mask is not None:
        info.mask_interface, _ = interface_info(
            mask, memory, attribute=attribute, stage=stage, with_mask=False
        )
    return info, value


def described(value: dict[Any, Any]) -> dict[str, Value]:
    """The items of a dict, whose keys become texts."""
    return {str(key): describe(item) for key, item in value.items()}


def struct_info(obj: Any, memory: Memory) -> tuple[StructInfo, Any]:
    """(info on `__array_struct__`, its capsule): its address is valid while the capsule lives."""
    enter(Stage.AS, "getter")
    capsule, error = attempt(lambda: obj.__array_struct__)
    if error is not None:
        return StructInfo(error=error), None
    enter(Stage.AS, "struct")
    info = read_array_struct(capsule, memory)
    if info.has_descr_pointer:
        info.descr = describe(announced_descr(capsule, memory))
    return info, capsule


def array_attribute_info(obj: Any, memory: Memory) -> InterfaceInfo | None:
    """What `__array__()` returns, by its array interface; None where the object has no such method.

    Only asked of objects without buffer and array interface, for which it is the way to
    `numpy.asarray`.
    """
    enter(Stage.GT, "__array__")
    method, error = attempt(lambda: getattr(type(obj), "__array__", None))
    if error is not None or method is None:
        return None
    array, error = attempt(obj.__array__)
    if error is not None:
        return InterfaceInfo(error=error)
    return interface_info(array, memory)[0]
