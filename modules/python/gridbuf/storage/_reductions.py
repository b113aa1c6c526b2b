"""What reductions of storages need: the axes that names are, the mask, and the result without the reduced dimensions."""

from __future__ import annotations

import operator
import unicodedata
from collections.abc import Callable, Sequence
from functools import lru_cache, partial
from typing import Any, SupportsIndex

import numpy as np

from .. import _core
from ._compute import common_points, fixed, new_names, stored
from ._operands import Operand, by_place, is_array, is_named, is_storage, place
from ._others import Side


def reduced(value: Any, left: _core.Parameters, side: Side, may_be_scalar: bool) -> Any:
    """What a reduction returns: a scalar, or a storage with the dimensions that are left, after new ones if there are more."""
    if isinstance(value, tuple):
        return tuple(reduced(item, left, side, may_be_scalar) for item in value)
    if may_be_scalar and getattr(value, "ndim", 0) == 0:
        return _scalar(value)
    value = value if hasattr(value, "ndim") else np.asarray(value)
    more = new_names(left.dims, value.ndim - len(left.dims))
    return stored(value, left, (*more, *left.dims), side)


def reduce_again(ufunc: np.ufunc, array: Any, axis: Any = 0, keepdims: bool = False) -> Any:
    """`ufunc.reduce` of a storage on the host, whose result was looked at before: that takes half as long as 64x64x64 numbers."""
    axes, make = _plan(ufunc, array._parameters, axis, bool(keepdims))
    if make is None:
        return ufunc.reduce(array._read_array("host"), axis=axes)
    result = make()
    target = result._write_array("host")
    try:
        ufunc.reduce(array._read_array("host"), axis=axes, out=target, keepdims=keepdims)
    finally:
        result._written("host")
    return result


@lru_cache(maxsize=1024)
def _plan(
    ufunc: np.ufunc, parameters: _core.Parameters, axis: Any, keepdims: bool
) -> tuple[tuple[int, ...], Callable[[], Any] | None]:
    """The axes, and what makes the result; None for a scalar."""
    axes = axes_of(axis, parameters.dims)
    left = parameters.reduced(axes, keepdims)
    one = np.zeros((1,) * len(parameters.dims), parameters.dtype)
    dtype = np.asarray(ufunc.reduce(one, axis=axes)).dtype
    return axes, partial(left.empty, dtype) if left.dims else None


def can_reduce_again(inputs: Sequence[Any], options: dict[str, Any]) -> bool:
    axis = options.get("axis", 0)
    items = axis if type(axis) is tuple else (axis,)
    return (
        len(inputs) == 1
        and is_storage(inputs[0])
        and inputs[0].device is None
        and options.keys() <= {"axis", "keepdims"}
        # Equal axes must mean the same: 1.0 is equal to 1, and no axis.
        and all(item is None or type(item) in (int, str) for item in items)
    )


def axes_of(axis: Any, dims: tuple[str, ...]) -> tuple[int, ...]:
    """The axes, ascending. `axis`: None for all, an integer or a name, or a tuple of them."""
    if axis is None:
        return tuple(range(len(dims)))
    if not dims and isinstance(axis, SupportsIndex) and operator.index(axis) in (0, -1):
        return ()  # as in NumPy
    axes = [axis_of(item, dims) for item in (axis if isinstance(axis, tuple) else (axis,))]
    if len(set(axes)) != len(axes):
        raise ValueError(
            f"axis is {axis!r}, which names a dimension twice; name each of {dims} at most once"
        )
    return tuple(sorted(axes))


def name_of(item: object) -> str | None:
    """The name that an axis is, which can be a Dimension of gt4py.next, normalised as those of storages; None for a number."""
    name = item if isinstance(item, str) else getattr(item, "value", None)
    return unicodedata.normalize("NFC", name) if isinstance(name, str) else None


def axis_of(item: Any, dims: tuple[str, ...]) -> int:
    if (name := name_of(item)) is not None:
        item = name
        if item not in dims:
            several = len(item) > 1 and set(item) <= set(dims)
            instead = (
                f"name several as {tuple(item)}" if several else "name one of them, or count it"
            )
            raise ValueError(
                f"axis is {item!r}, but must be one of the dimensions {dims}; {instead}"
            )
        return dims.index(item)
    if isinstance(item, list):
        raise TypeError(f"axis is {item!r}, but must be a tuple; write {tuple(item)}")
    number = operator.index(item)
    if not -len(dims) <= number < len(dims):
        raise np.exceptions.AxisError(number, len(dims))
    return number % len(dims)


def fit_mask(mask: Operand, array: Any) -> Operand:
    """`where` of a reduction, which has dimensions of the array only, without unnamed axes."""
    _, mask, _ = by_place([], mask, [array])
    if is_named(mask):
        field = _core._join(array._parameters, [], [fixed(array), mask])
        if len(field.dims) != len(array.dims):
            raise ValueError(
                f"where has the dimensions {mask.dims}, but must have none beyond the array's, {array.dims}; select a "
                "point of the others"
            )
        (mask,) = common_points([mask], array)
    elif is_array(mask):
        place(mask, array.shape, [array])
    return mask


def _scalar(value: Any) -> Any:
    """A number of CuPy's comes to the host; NumPy's is there."""
    return value.get()[()] if hasattr(value, "__cuda_array_interface__") else value
