"""ufuncs and reductions with what CuPy has of NumPy's.

CuPy's ufuncs take no `where` and no `signature`, and only two of them reduce. Here is the same work in functions that it
has: a result that is copied where the mask allows, and `sum`, `amax`, `all`, … in place of `reduce`.

`xp` is the module that computes, a parameter because all of this is NumPy's interface, too: so it is tested with NumPy on
machines without a GPU. On a GPU, with CuPy, it was not run.
"""

from __future__ import annotations

from collections.abc import Sequence
from operator import attrgetter
from typing import Any

import numpy as np

_REDUCTIONS: dict[np.ufunc, str] = {
    np.add: "sum",
    np.multiply: "prod",
    np.maximum: "amax",
    np.minimum: "amin",
    np.logical_and: "all",
    np.logical_or: "any",
}


def named(xp: Any, name: str) -> Any:
    """The function of NumPy's name, such as "linalg.norm". TypeError if CuPy does not have it."""
    try:
        return attrgetter(name)(xp)
    except AttributeError:
        raise TypeError(
            f"CuPy, which computes with storages on a device, has no {name}; compute on the host: "
            f"numpy.{name}(gridbuf.storage.storage(array, device=None))"
        )


def call(
    xp: Any,
    ufunc: np.ufunc,
    arrays: Sequence[Any],
    targets: Sequence[Any],
    mask: Any,
    options: dict[str, Any],
) -> None:
    """`ufunc(*arrays, out=targets, where=mask, **options)`. TypeError for what CuPy does not have."""
    own = getattr(xp, ufunc.__name__, None)
    missing = [name for name in options if name not in ("dtype", "casting")]
    if own is None or missing:
        what = f"the option {missing[0]}" if missing else "no such ufunc"
        raise TypeError(
            f"numpy.{ufunc.__name__} is asked of CuPy with {what}, which it does not have; compute on the host: "
            "gridbuf.storage.storage(array, device=None)"
        )
    if mask is True:
        own(*arrays, out=tuple(targets) if len(targets) > 1 else targets[0], **options)
        return
    results = own(*arrays, **options)
    casting = options.get("casting", "same_kind")
    for target, result in zip(targets, results if len(targets) > 1 else (results,)):
        xp.copyto(target, result, casting=casting, where=mask)


def reduce(
    xp: Any,
    ufunc: np.ufunc,
    array: Any,
    mask: Any,
    axes: tuple[int, ...],
    options: dict[str, Any],
    room: Any = None,
) -> Any:
    """`ufunc.reduce(array, axis=axes, where=mask, **options)`. TypeError for reductions that CuPy does not have. `room`: as in
    _compute."""
    name = _REDUCTIONS.get(ufunc)
    if name is None:
        raise TypeError(
            f"numpy.{ufunc.__name__}.reduce is asked of CuPy, which reduces with "
            f"{', '.join(known.__name__ for known in _REDUCTIONS)} only; compute on the host: "
            "gridbuf.storage.storage(array, device=None)"
        )
    initial = options.get("initial")
    if mask is not True:
        array = xp.where(mask, array, _neutral(ufunc, array.dtype, initial))
    dtype = options["dtype"]
    if dtype is None and room is not None:
        given = (room[1], array.dtype, None)
        *_, dtype = ufunc.resolve_dtypes(given, casting="unsafe", reduction=True)
    if dtype is not None:
        array = array.astype(dtype)
    result = getattr(xp, name)(array, axis=axes, keepdims=options["keepdims"])
    if initial is not None:
        result = getattr(xp, ufunc.__name__)(result, initial)
    return result if room is None else result.astype(room[1])


def _neutral(ufunc: np.ufunc, dtype: np.dtype[Any], initial: Any) -> Any:
    """What changes no result, for the elements that a mask leaves out."""
    value = initial if ufunc.identity is None else ufunc.identity
    if value is None:
        raise ValueError(
            f"reduction operation '{ufunc.__name__}' does not have an identity, so to use a where mask one has to "
            "specify 'initial'"
        )
    return np.asarray(value).astype(dtype)[()]
