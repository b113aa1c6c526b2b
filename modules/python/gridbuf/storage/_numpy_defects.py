"""NumPy's defects (seen in 2.4.6) that would make results of storages wrong, and ways around them: docs/limits.md has programs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

# They crash with a mask, if an operand is an integer of Python beyond the other's type.
_COMPARISONS = {np.equal, np.not_equal, np.less, np.less_equal, np.greater, np.greater_equal}

# Their loops read or write wrong elements if those of the output are not adjacent along the inner axis.
_WRONG_IF_STRIDED = {np.negative, np.isfinite, np.isinf, np.isnan, np.signbit}


def caller(ufunc: np.ufunc) -> Callable[..., Any]:
    """A function that is called as `ufunc` with `out`; the ufunc itself wherever that is right."""
    if ufunc not in _WRONG_IF_STRIDED:
        return ufunc

    def call(array: Any, /, *, out: Any, where: Any = True, **options: Any) -> None:
        (target,) = out if isinstance(out, tuple) else (out,)
        if _are_dense(target.flags, getattr(array, "flags", None)):
            ufunc(array, out=target, where=where, **options)
        else:
            made = ufunc(np.broadcast_to(array, target.shape), **options)
            np.copyto(target, made, casting=options.get("casting", "same_kind"), where=where)

    return call


def _are_dense(flags: Any, others: Any) -> bool:
    """Whether two arrays with these flags have adjacent elements in one order of dimensions."""
    return others is not None and (
        (flags.c_contiguous and others.c_contiguous) or (flags.f_contiguous and others.f_contiguous)
    )


def masked(
    ufunc: np.ufunc,
    arrays: Sequence[Any],
    targets: Sequence[Any],
    mask: Any,
    options: dict[str, Any],
) -> None:
    """`ufunc(*arrays, out=targets, where=mask)`.

    Where NumPy copies an output that overlaps, and converts its elements, it writes elements that the mask leaves out: inputs
    are copied first. Its comparisons with an integer of Python beyond the array's type crash with a mask.
    """

    def apart(value: Any) -> Any:
        overlaps = isinstance(value, np.ndarray) and any(
            np.may_share_memory(value, target) for target in targets
        )
        return value.copy() if overlaps else value

    if ufunc in _COMPARISONS and any(isinstance(value, int) for value in arrays):
        casting = options.get("casting", "same_kind")
        np.copyto(targets[0], ufunc(*arrays, **options), casting=casting, where=apart(mask))
    else:
        caller(ufunc)(*map(apart, arrays), out=tuple(targets), where=apart(mask), **options)


def _take(a: Any, indices: Any, axis: Any = None, out: Any = None, mode: Any = "raise") -> Any:
    shape = (np.size(a),) if axis is None else np.shape(a) or (1,)
    if mode in ("wrap", 1) and -len(shape) <= (axis or 0) < len(shape):
        indices, mode = _wrapped(indices, shape[axis or 0]), "clip"
    return np.take(a, indices, axis, out, mode)


def _choose(a: Any, choices: Any, out: Any = None, mode: Any = "raise") -> Any:
    if mode in ("wrap", 1):
        a, mode = _wrapped(a, len(choices)), "clip"
    return np.choose(a, choices, out, mode)


def _wrapped(indices: Any, extent: int) -> Any:
    """The indices in bounds. NumPy adds the extent until they are, which takes long, or never ends if it is 0."""
    if np.size(indices) == 0:
        return indices
    indices = np.asarray(indices)
    return np.remainder(indices, np.intp(extent)) if extent else np.zeros_like(indices)


def _einsum(*operands: Any, out: Any = None, **options: Any) -> Any:
    """NumPy's writes beyond the memory if an operand has no elements, but strides."""
    arrays: list[Any] = list(operands)
    if not any(isinstance(array, np.ndarray) and array.size == 0 for array in arrays):
        return np.einsum(*arrays, out=out, **options)
    dense: list[Any] = [
        np.zeros(a.shape, a.dtype) if isinstance(a, np.ndarray) else a for a in arrays
    ]
    made = np.einsum(*dense, **options)
    if out is None:
        return made
    np.copyto(out, made, casting=options.get("casting", "safe"))
    return out


_AROUND: dict[Any, Callable[..., Any]] = {np.choose: _choose, np.einsum: _einsum, np.take: _take}

# They write wrong elements, and beyond the memory, if `out` does not have the shape of the result.
_ACCUMULATIONS: set[Any] = {
    np.cumprod,
    np.cumsum,
    np.cumulative_prod,
    np.cumulative_sum,
    np.nancumprod,
    np.nancumsum,
}


def around(function: Callable[..., Any], out: Any) -> Callable[..., Any]:
    """A function that is called as `function`, for plain arrays and `out`."""
    if function not in _ACCUMULATIONS or out is None:
        return _AROUND.get(function, function)

    def accumulate(array: Any, /, *rest: Any, **options: Any) -> Any:
        axis = options.get("axis", rest[0] if rest else None)
        shape = list(np.shape(array) or (1,)) if axis is not None else [np.size(array)]
        if -len(shape) <= (axis or 0) < len(shape):  # else NumPy refuses it
            shape[axis or 0] += bool(options.get("include_initial"))
            if out.shape != tuple(shape):
                raise ValueError(
                    f"out is an array of shape {out.shape}, but must have the shape of the result, {tuple(shape)}; pass such an "
                    "array or storage"
                )
        return function(array, *rest, **options)

    return accumulate
