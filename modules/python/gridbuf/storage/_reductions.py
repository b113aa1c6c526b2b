"""Reductions of storages: `ufunc.reduce`, which drops the dimensions that it reduces."""

from __future__ import annotations

import operator
import unicodedata
from collections.abc import Callable, Sequence
from functools import lru_cache, partial
from typing import Any, SupportsIndex

import numpy as np

from .. import _core
from . import _cupy
from ._compute import delivered, fixed, new_names, room, run, stored
from ._operands import (
    Operand,
    by_place,
    decider,
    is_array,
    is_named,
    is_storage,
    operand,
    output,
    place,
    side_of,
)
from ._others import Side, taken

__all__ = ["axes_of", "axis_of", "fit_mask", "reduce", "reduced"]


def reduce(
    ufunc: np.ufunc,
    array: Any,
    axis: Any = 0,
    dtype: Any = None,
    out: tuple[Any, ...] = (None,),
    keepdims: bool = False,
    where: Any = True,
    **initial: Any,
) -> Any:
    """`ufunc.reduce`: a storage without the reduced dimensions, or a scalar if no dimension is left.

    `axis` counts as in NumPy, or names dimensions: `numpy.add.reduce(field, axis="K")`.
    """
    if not is_storage(array):
        raise TypeError(
            f"numpy.{ufunc.__name__}.reduce reduces a {type(array).__name__}, whose dimensions have no names, but out or "
            "where is a storage; wrap it with gridbuf.storage.as_storage(array, dims=...)"
        )
    usual = dtype is None and out[0] is None and where is True and not initial
    if usual and array.device is None and _is_plain(axis):
        return _reduce_again(ufunc, array, axis, bool(keepdims))
    mask, target = operand(where), output(out[0])
    if mask is NotImplemented or target is NotImplemented:
        return NotImplemented
    axes = axes_of(axis, array.dims)
    options = {"dtype": dtype, "keepdims": bool(keepdims), **initial}
    left = array._parameters.reduced(axes, bool(keepdims))

    def work(xp: Any, arrays: Sequence[Any], targets: Sequence[Any], mask: Any) -> Any:
        made = room(target, left.shape)
        if xp is not np:
            return _cupy.reduce(xp, ufunc, arrays[0], mask, axes, options, made)
        masked = {} if mask is True else {"where": mask}
        given = {} if made is None else {"out": np.empty(*made)}
        return ufunc.reduce(arrays[0], axis=axes, **masked, **given, **options)

    side = side_of([array, mask], [target])
    with taken(side, [array, mask], [target]):
        mask = fit_mask(mask, array)
        value = run(work, [array], mask, [], array.dims, side, whole=True)
        field = _core._join(decider([array, mask, target])._parameters, [left], [])
        return delivered(reduced(value, field, side, target is None), out[0], target, side)


def reduced(value: Any, left: _core.Parameters, side: Side, may_be_scalar: bool) -> Any:
    """What a reduction returns: a scalar, or a storage with the dimensions that are left, after new ones if there are more."""
    if isinstance(value, tuple):
        return tuple(reduced(item, left, side, may_be_scalar) for item in value)
    if may_be_scalar and getattr(value, "ndim", 0) == 0:
        return _scalar(value)
    value = value if hasattr(value, "ndim") else np.asarray(value)
    more = new_names(left.dims, value.ndim - len(left.dims))
    return stored(value, left, (*more, *left.dims), side)


def _reduce_again(ufunc: np.ufunc, array: Any, axis: Any, keepdims: bool) -> Any:
    """`reduce` of a host storage without options: the result of the analysis is cached by parameters."""
    axes, make = _plan(ufunc, array._parameters, axis, keepdims)
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


def _is_plain(axis: Any) -> bool:
    """Whether equal means the same: 1.0 is equal to 1, and no axis."""
    items = axis if type(axis) is tuple else (axis,)
    return all(item is None or type(item) in (int, str) for item in items)


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
    elif is_array(mask):
        place(mask, array.shape, [array])
    return mask


def _scalar(value: Any) -> Any:
    """A number of CuPy's comes to the host; NumPy's is there."""
    return value.get()[()] if hasattr(value, "__cuda_array_interface__") else value
