"""NumPy's functions on storages that are not ufuncs: `all`, `any`, `transpose`, `copyto`, and `save`.

Dimensions are paired by name, as in ufuncs. There are no others, because what the rest of NumPy does it does by position:
they raise a TypeError that names `to_numpy()`, which is where positions are at home.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from .. import _core
from ._compute import compute
from ._operands import is_array, operand, output
from ._reductions import reduce
from ._refusals import refuse
from ._ufuncs import sample

__all__ = ["array_function", "copyto"]


def array_function(
    self: Any,
    function: Callable[..., Any],
    types: Sequence[type],
    arguments: tuple[Any, ...],
    keywords: dict[str, Any],
) -> Any:
    """`__array_function__`. TypeError for functions that storages do not have."""
    ours = _FUNCTIONS.get(function)
    if ours is not None:
        return ours(*arguments, **keywords)
    if not all(issubclass(kind, (np.ndarray, _core.StorageBase)) for kind in types):
        return NotImplemented
    module = getattr(function, "__module__", None) or "numpy"
    refuse(f"{module}.{getattr(function, '__name__', function)}")


def _reduce_all(ufunc: np.ufunc, a: Any, axis: Any, out: Any, keepdims: Any, where: Any) -> Any:
    """`numpy.all` and `numpy.any` are reductions over all axes unless one is named."""
    keep = {} if keepdims is np._NoValue else {"keepdims": keepdims}
    masked = {} if where is np._NoValue else {"where": where}
    return reduce(ufunc, a, axis, None, (out,), **keep, **masked)


def _all(
    a: Any,
    axis: Any = None,
    out: Any = None,
    keepdims: Any = np._NoValue,
    *,
    where: Any = np._NoValue,
) -> Any:
    return _reduce_all(np.logical_and, a, axis, out, keepdims, where)


def _any(
    a: Any,
    axis: Any = None,
    out: Any = None,
    keepdims: Any = np._NoValue,
    *,
    where: Any = np._NoValue,
) -> Any:
    return _reduce_all(np.logical_or, a, axis, out, keepdims, where)


def _transpose(a: Any, axes: Any = None) -> Any:
    return a.transpose() if axes is None else a.transpose(*axes)


def copyto(dst: Any, src: Any, casting: Any = "same_kind", where: Any = True) -> Any:
    """`numpy.copyto` and `gridbuf.copyto` where a storage takes part. NotImplemented for operands that offer no memory."""
    source, mask, target = operand(src), operand(where), output(dst)
    if any(value is NotImplemented for value in (source, mask, target)):
        return NotImplemented

    def work(xp: Any, arrays: Sequence[Any], targets: Sequence[Any], mask: Any) -> None:
        if xp is np:
            _core.copyto(targets[0], arrays[0], casting, mask)
        else:
            xp.copyto(targets[0], arrays[0], casting=casting, where=mask)

    def dtypes() -> list[np.dtype[Any]]:
        value = sample(source) if is_array(source) else source
        np.copyto(sample(target), value, casting=casting)  # refuses what NumPy refuses
        return [target.dtype]

    compute(work, dtypes, [source], mask, [target])
    return None


def _save(file: Any, arr: Any, *arguments: Any, **keywords: Any) -> None:
    np.save(file, np.asarray(arr), *arguments, **keywords)


_FUNCTIONS: dict[Callable[..., Any], Callable[..., Any]] = {
    np.all: _all,
    np.any: _any,
    np.copyto: copyto,
    np.save: _save,
    np.transpose: _transpose,
}
