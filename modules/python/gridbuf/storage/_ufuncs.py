"""Universal functions of storages, and with them all operators."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from .. import _core
from .._core import StorageBase
from . import _cupy
from ._compute import Work, compute, run
from ._numpy_defects import caller, masked
from ._operands import NUMBERS, Operand, is_array, is_storage, operand, output, sample, side_of


def call_ufunc(
    ufunc: np.ufunc,
    inputs: tuple[Any, ...],
    out: tuple[Any, ...] = (),
    where: Any = True,
    **options: Any,
) -> Any:
    """`ufunc(*inputs, out=out, where=where, **options)`."""
    operands: Sequence[Operand] = [operand(value) for value in inputs]
    mask = operand(where)
    outputs = [output(value) for value in out] or [None] * ufunc.nout
    if any(value is NotImplemented for value in (*operands, mask, *outputs)):
        return NotImplemented
    _refuse_order(options)

    def dtypes() -> tuple[np.dtype[Any], ...]:
        samples = [sample(value) if is_array(value) else value for value in operands]
        given = [None if value is None else sample(value) for value in outputs]
        results = ufunc(*samples, **({"out": tuple(given)} if out else {}), **options)
        found = tuple(result.dtype for result in (results if ufunc.nout > 1 else (results,)))
        if not out and any(dtype.hasobject for dtype in found):
            raise TypeError(
                f"{ufunc.__name__} gives Python objects, which storages do not hold; use storage.to_numpy()"
            )
        return found

    made = compute(_work(ufunc, options), dtypes, operands, mask, outputs)
    results = [new if old is None else old for new, old in zip(made, out or outputs)]
    return results[0] if ufunc.nout == 1 else tuple(results)


def _work(ufunc: np.ufunc, options: dict[str, Any]) -> Work:
    def work(xp: Any, arrays: Sequence[Any], targets: Sequence[Any], mask: Any) -> None:
        if xp is not np:
            _cupy.call(xp, ufunc, arrays, targets, mask, options)
        elif mask is True:
            caller(ufunc)(*arrays, out=tuple(targets), **options)
        else:
            masked(ufunc, arrays, targets, mask, options)

    return work


class _Plan(NamedTuple):
    """What was found out about operands of such parameters, for the next time."""

    # Per input: the dims in which it is read, None for its own, False for a number.
    reads: tuple[Any, ...]
    make: Callable[[], Any] | None  # a new result; None: it is given
    dims: tuple[str, ...]  # of the result
    is_on_host: bool  # else the operands decide each time
    call: Callable[..., Any]  # the ufunc


# The one cache of what functions of two or fewer operands find out.
_plans: dict[tuple[Any, ...], _Plan] = {}
_MAX_PLANS = 1024


def call_again(ufunc: np.ufunc, inputs: tuple[Any, ...], out: Any) -> Any:
    """`call_ufunc` with one output, which is made if it is None, and no other options.

    An expression in a time loop meets the same parameters again and again. What it takes to look at them would be a
    third of the time that NumPy adds 64x64x64 numbers in, so it is done once.
    """
    operands = (*inputs, out)
    # A list: a generator takes longer.
    key = (ufunc, *[v._parameters if isinstance(v, StorageBase) else type(v) for v in operands])
    plan = _plans.get(key)
    if plan is None:
        result = call_ufunc(ufunc, inputs, () if out is None else (out,))
        _remember(key, inputs, out, result)
        return result
    reads, make, dims, is_on_host, call = plan
    if not is_on_host:
        side = side_of(inputs, (out,))
        result = out if make is None else make()
        run(_work(ufunc, {}), inputs, True, [result], dims, side, whole=True)
        return result
    result = out if make is None else make()
    arrays = [v if d is False else v._read_array("host", d) for v, d in zip(inputs, reads)]
    target = result._write_array("host")
    try:
        call(*arrays, out=target)
    finally:
        result._written("host")
    return result


def _remember(key: tuple[Any, ...], inputs: Sequence[Any], out: Any, result: Any) -> None:
    """Numbers of one type give the same dtype whatever their value, so that types are all that a plan needs of them."""
    if not is_storage(result):
        return
    if not all(
        not value._parameters.unnamed and _core._common_points(value, result) is None
        if is_storage(value)
        else type(value) in NUMBERS
        for value in inputs
    ):
        return
    if len(_plans) >= _MAX_PLANS:
        _plans.clear()
    dims = result.dims
    reads = [(None if v.dims == dims else dims) if is_storage(v) else False for v in inputs]
    make = result._parameters.empty if out is None else None
    _plans[key] = _Plan(tuple(reads), make, dims, result.device is None, caller(key[0]))


def _refuse_order(options: dict[str, Any]) -> None:
    if options.get("order", "K") not in ("K", None) or options.get("subok", True) is not True:
        raise TypeError(
            "order and subok do not apply to storages: the layout of a result is that of the first storage; pass out= "
            "for another one"
        )
