"""The operands of an array function, and the side on which it is computed.

An operand is a storage, an `Other` (an array of someone else's), or anything else, which counts as a number and is for
NumPy to judge. An `Other` without names for its dimensions joins if its shape leaves no doubt, which `place` decides.

Where the work is done follows from the storages (`side_of`): memory of the host on the host, memory of a device on the
device; storages of both kinds compute on the current side. It is never done elsewhere because something is missing.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from .. import _core
from ._others import BOTH, DEVICE, HOST, Other, Side, sides_of

NUMBERS = frozenset(
    {bool, int, float, complex, np.bool_, np.float64, np.float32, np.int64, np.int32}
)

# The sides that storages of a class have.
_SIDES: dict[str, tuple[Side, ...]] = {
    "CPUStorage": HOST,
    "GPUStorage": DEVICE,
    "SoftwareManagedGPUStorage": BOTH,
    "CUDAManagedGPUStorage": BOTH,
}

Operand = Any
"""A storage, an `Other`, or anything else, which counts as a number."""


def operand(value: object) -> Operand:
    """`value` as an operand. NotImplemented for arrays that want to handle NumPy's functions and export no memory."""
    if (
        isinstance(value, _core.StorageBase)
        or type(value) in NUMBERS
        or isinstance(value, (str, bytes, np.generic))
    ):
        return value
    if isinstance(value, np.ndarray):
        return Other(value) if value.ndim > 0 else value[()]
    if isinstance(value, (list, tuple)):
        return Other(np.asarray(value))
    if sides_of(value):
        return Other(value)
    return NotImplemented if hasattr(value, "__array_ufunc__") else value


def output(value: Any) -> Operand:
    """An output as an operand: an array even if it has no dimensions. None stays None. TypeError for what is not an array."""
    if value is None:
        return None
    if isinstance(value, np.ndarray):
        return Other(value)
    target = NotImplemented if isinstance(value, (list, tuple)) else operand(value)
    if is_array(target) or target is NotImplemented and hasattr(value, "__array_ufunc__"):
        return target
    raise TypeError(
        f"the output is of type {type(value).__name__}, but must be a storage or an array; pass one, such as "
        "gridbuf.storage.empty(shape, dtype)"
    )


def is_storage(value: Operand) -> bool:
    return isinstance(value, _core.StorageBase)


def is_array(value: Operand) -> bool:
    return isinstance(value, (_core.StorageBase, Other))


def is_named(value: Operand) -> bool:
    """Whether the dimensions of an array have names. Others must be taken."""
    return isinstance(value, _core.StorageBase) or (
        isinstance(value, Other) and value.dims is not None
    )


def read(value: Operand, side: Side, dims: tuple[str, ...] | None) -> Any:
    """The operand as an array in the order of `dims` (None: its own); a number unchanged.

    Copies a host storage that a device needs.
    """
    if not is_array(value):
        return value
    if side == "device" and is_storage(value) and _sides(value) == HOST:
        value = _core._storage_storage(value, device="gpu", managed=None)
    return value._read_array(side, dims)


def sample(value: Operand) -> np.ndarray[Any, Any]:
    """An array of the operand's dtype without elements: what NumPy says of it, it says of the operand."""
    return np.empty(0, value.dtype)


def place(other: Other, shape: tuple[int, ...], named: Sequence[Operand]) -> None:
    """Finds out what the dimensions of an array without names are: those of the result, its last ones, or those of a storage.

    Raises ValueError if its shape is neither the result's (1 for any extent), nor that of its last dimensions, whose extents occur
    once, nor that of a storage, or that of storages with different dimensions.
    """
    own = other.shape
    last = zip(reversed(own), reversed(shape))
    if len(own) == len(shape) and all(a in (1, b) for a, b in last):
        return
    if len(own) < len(shape) and all(a == 1 or a == b and shape.count(a) == 1 for a, b in last):
        return
    dims = {storage.dims for storage in named if storage.shape == own}
    name_them = "name its dimensions with gridbuf.storage.as_storage(array, dims=...)"
    if not dims:
        raise ValueError(
            f"an array of shape {own} without names has neither the shape of the result, {shape}, nor of its last dimensions, nor of "
            f"a storage; {name_them}"
        )
    if len(dims) > 1:
        found = " and ".join(map(str, sorted(dims)))
        raise ValueError(f"an array of shape {own} fits storages with dims {found}; {name_them}")
    (other.dims,) = dims


def by_place(
    operands: Sequence[Operand], mask: Operand, outputs: Sequence[Operand]
) -> tuple[list[Operand], Operand, tuple[str, ...] | None]:
    """Operands and mask without the unnamed axes whose place has a name, and the order of the result.

    An axis that None has added has no name. It is the dimension that another array has at its place, counted from the last,
    and stretches along it: without the axis, the array is repeated there. If no array names the place, the axis stays in one of
    the arrays. The order is that of the places; None without such axes, or if the places do not give one.
    """
    inputs = [value for value in (*operands, mask) if is_array(value)]
    if not any(is_storage(value) and value._parameters.unnamed for value in inputs):
        return list(operands), mask, None

    def names_of(value: Operand) -> dict[int, str]:
        """The names of an array's dimensions by place."""
        new = value._parameters.unnamed if is_storage(value) else ()
        ndim = len(value.dims)
        return {axis - ndim: name for axis, name in enumerate(value.dims) if axis not in new}

    named: dict[int, list[str]] = {}
    for value in filter(is_named, (*inputs, *outputs)):
        for place, name in names_of(value).items():
            named.setdefault(place, []).append(name)
    kept: dict[int, str] = {}
    has_arrays = any(is_array(value) and not is_named(value) for value in (*inputs, *outputs))

    def gone(value: Operand) -> list[int]:
        """The unnamed axes that have a partner at their place."""
        own, axes = names_of(value).values(), []
        for axis in value._parameters.unnamed:
            place, name = axis - value.ndim, value.dims[axis]
            names = set(named.get(place, ()))
            if names.difference(own) or kept.setdefault(place, name) != name:
                axes.append(axis)
            elif names and has_arrays:
                raise ValueError(
                    f"an axis that None has added to {value.dims} is where another operand has the dimensions {sorted(names)}, which "
                    "the storage has elsewhere; an array without names cannot be paired with both: name its dimensions with "
                    "gridbuf.storage.as_storage(array, dims=...)"
                )
        return axes

    def seen(value: Operand) -> Operand:
        if not is_storage(value) or not (axes := gone(value)):
            return value
        return value[(..., *(0 if axis in axes else slice(None) for axis in range(value.ndim)))]

    for value in filter(is_storage, outputs):
        gone(value)  # An output keeps its axes.
    *operands, mask = [seen(value) for value in (*operands, mask)]
    order: list[str] = []
    for place in range(-max(len(value.shape) for value in inputs), 0):
        found = [*named.get(place, ()), *([kept[place]] if place in kept else [])]
        order += [name for name in found if name not in order][:1]
    names = {name for value in filter(is_named, (*operands, mask)) for name in value.dims}
    return operands, mask, tuple(order) if set(order) == names else None


# ---- The side. ----


def _sides(value: Operand) -> tuple[Side, ...]:
    return value.sides if isinstance(value, Other) else _SIDES[type(value).__name__]


def decider(arrays: Sequence[Operand]) -> Any:
    """The storage that decides: the first managed one, else the first."""
    storages = [value for value in arrays if isinstance(value, _core.StorageBase)]
    return next((storage for storage in storages if _sides(storage) == BOTH), storages[0])


def side_of(operands: Sequence[Operand], outputs: Sequence[Operand]) -> Side:
    """Where to compute. Requires at least one storage.

    Memory of the host needs operands that the host can read, memory of a device such that a device can; else TypeError.
    With a storage on both sides, only the outputs must be reachable. Beyond that, a CUDA-managed one means
    the device if any operand exports a device interface, a software-managed one the device unless every operand is
    current on the host only. Operands that only the host has are then copied to the device.
    """
    inputs = [value for value in operands if is_array(value)]
    outputs = [value for value in outputs if value is not None]
    first = decider([*inputs, *outputs])
    kind = type(first).__name__
    if _sides(first) != BOTH:
        (side,) = _sides(first)
        _require(side, [*inputs, *outputs], kind)
        return side
    for side in BOTH:
        if any(_sides(value) == (side,) for value in outputs):
            _require(side, outputs, "the output")
            if side == "host":
                _require(side, inputs, "the output")
            return side
    if kind == "CUDAManagedGPUStorage":
        return "device" if any("device" in _sides(value) for value in inputs) else "host"
    return "host" if all(_is_on_host_only(value) for value in inputs) else "device"


def _is_on_host_only(value: Operand) -> bool:
    if type(value).__name__ == "SoftwareManagedGPUStorage":
        return bool(value._current_sides() == HOST)
    return _sides(value) == HOST


def _require(side: Side, arrays: Sequence[Operand], who: str) -> None:
    for value in arrays:
        if side in _sides(value):
            continue
        name = value.name if isinstance(value, Other) else type(value).__name__
        where, copied = ("host", "None") if side == "host" else ("device", '"gpu"')
        raise TypeError(
            f"{who} is computed with on the {where}, which cannot reach the {name}; "
            f"copy it: gridbuf.storage.storage(array, device={copied})"
        )
