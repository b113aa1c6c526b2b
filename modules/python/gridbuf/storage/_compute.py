"""How an array function is carried out, whatever it computes.

`compute` finds out what the result looks like, brings every operand up to date on one side, in one order of dimensions,
lets NumPy (or CuPy, on a device) do the work on real memory, and marks the written region. As NumPy sees the memory itself,
overlapping inputs and outputs come out right. On the emulated device NumPy runs inside a kernel.

All that can be refused is refused before an output is touched: dimensions, shapes, dtypes and casts. What raises later
(a floating-point error that NumPy was told to raise) leaves the elements written so far in the output, as in NumPy.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import ExitStack
from typing import Any

import numpy as np

from .. import _core
from .._stream import run_on_device
from ._operands import (
    Operand,
    decider,
    is_named,
    is_storage,
    place,
    read,
    side_of,
)
from ._others import Other, Side, taken

__all__ = [
    "Work",
    "assign",
    "compute",
    "require_all_dims",
    "require_shape",
    "run",
]

Work = Callable[[Any, Sequence[Any], Sequence[Any], Any], Any]
"""What is to be done: by which module (numpy or cupy), with the arrays of the inputs, those of the outputs, and `where`."""


def compute(
    work: Work,
    dtypes: Callable[[], Sequence[np.dtype[Any]]],
    operands: Sequence[Operand],
    mask: Operand,
    outputs: Sequence[Operand],
) -> list[Operand]:
    """Runs `work` on operands and outputs as arrays in one order of dimensions. Makes the outputs that are None."""
    arrays = [*operands, mask]
    side = side_of(arrays, outputs)
    with taken(side, arrays, outputs):
        field = _result_field(operands, mask, outputs)
        made = [field.empty(dtype) if old is None else old for dtype, old in zip(dtypes(), outputs)]
        run(work, operands, mask, made, field.dims, side, whole=mask is True)
        return made


def _result_field(
    operands: Sequence[Operand], mask: Operand, outputs: Sequence[Operand]
) -> _core.Parameters:
    """The parameters of the result, but for the dtype; all operands fit it when this returns."""
    named = [value for value in operands if is_named(value)]
    fields = [value._parameters for value in named if is_storage(value)]
    others = [value for value in named if not is_storage(value)]
    others += [value for value in (mask, *outputs) if is_named(value)]
    first = decider([*operands, mask, *outputs])
    field = _core._join(first._parameters, fields, others)
    require_all_dims(field.dims, outputs)
    out = next((value for value in outputs if is_storage(value)), None)
    if out is not None:
        field = out._parameters
        named.append(out)
    for value in (*operands, mask):
        if isinstance(value, Other) and value.dims is None:
            place(value, field.shape, named)
    for value in outputs:
        if isinstance(value, Other) and value.dims is None:
            require_shape(value, field)
    return field


def require_shape(out: Other, field: _core.Parameters) -> None:
    if out.shape != field.shape:
        raise ValueError(
            f"out is an array of shape {out.shape}, but must have the shape of the result, {field.shape}, for dimensions "
            f"{field.dims}; pass such an array, or a storage, whose dimensions have names"
        )


def require_all_dims(dims: tuple[str, ...], outputs: Sequence[Operand]) -> None:
    """The names of all that takes part must be in every output that has names."""
    for value in outputs:
        missing = [name for name in dims if is_named(value) and name not in value.dims]
        if missing:
            raise ValueError(
                f"out has the dimensions {value.dims}, but must have all of {dims}, those that take part; it lacks "
                f"{missing[0]!r}: pass a storage that has it, or select a point of it in the operand"
            )


def run(
    work: Work,
    operands: Sequence[Operand],
    mask: Operand,
    outputs: Sequence[Operand],
    dims: tuple[str, ...],
    side: Side,
    *,
    whole: bool,
    out_dims: tuple[str, ...] | None = None,
) -> Any:
    """Reads, works, and marks; what `work` returns. Outputs that were begun are ended, whatever is raised."""
    arrays = [read(value, side, dims) for value in (*operands, mask)]
    count = len(arrays)

    def kernel(xp: Any, *arrays: Any) -> Any:
        return work(xp, arrays[: count - 1], arrays[count:], arrays[count - 1])

    with ExitStack() as written:
        for value in outputs:
            arrays.append(value._write_array(side, out_dims or dims, whole))
            written.callback(value._written, side)
        return kernel(np, *arrays) if side == "host" else run_on_device(kernel, arrays)


def assign(target: Operand, source: Any, side: Side) -> None:
    """target[...] = source, cast as reductions cast, along the dimensions that `source` does not have.

    Requires that the dimensions fit.
    """

    def work(xp: Any, arrays: Sequence[Any], targets: Sequence[Any], mask: Any) -> None:
        xp.copyto(targets[0], arrays[0], casting="unsafe")

    run(work, [source], True, [target], target.dims, side, whole=True)
