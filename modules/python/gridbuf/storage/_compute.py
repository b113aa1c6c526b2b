"""How an array function is carried out, whatever it computes.

`compute` finds out what the result looks like, brings every operand up to date on one side, in one order of dimensions,
lets NumPy (or CuPy, on a device) do the work on real memory, and marks the written region. NumPy sees the memory itself, and
copies inputs that overlap outputs; where it is wrong, `_numpy_defects` goes another way. On the emulated device NumPy runs
inside a kernel.

All that can be refused is refused before an output is touched: dimensions, shapes, dtypes and casts. What raises later
(a floating-point error that NumPy was told to raise) leaves the elements written so far in the output, as in NumPy.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import ExitStack
from types import SimpleNamespace
from typing import Any

import numpy as np

from .. import _core
from .._stream import run_on_device
from ._operands import Operand, by_place, decider, is_named, is_storage, place, read, side_of
from ._others import Other, Side, taken

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
        operands, mask, order = by_place(operands, mask, outputs)
        field = result_field(operands, mask, outputs, order)
        *operands, mask = common_points([*operands, mask], field)
        made = [field.empty(dtype) if old is None else old for dtype, old in zip(dtypes(), outputs)]
        run(work, operands, mask, made, field.dims, side, whole=mask is True)
        return made


def result_field(
    operands: Sequence[Operand],
    mask: Operand,
    outputs: Sequence[Operand],
    order: tuple[str, ...] | None = None,
) -> _core.Parameters:
    """The parameters of the result, but for the dtype; all operands fit it when this returns.

    The arguments are as `by_place` returns them.
    """
    named = [value for value in operands if is_named(value)]
    fields = [value._parameters for value in named if is_storage(value)]
    others = [value for value in named if not is_storage(value)]
    others += [mask] if is_named(mask) else []
    others += [fixed(value) for value in outputs if is_named(value)]
    first = decider([*operands, mask, *outputs])
    field = _core._join(first._parameters, fields, others, order)
    stretched = [
        SimpleNamespace(dims=(field.dims[axis],), shape=(value.shape[axis],))
        for value in (*operands, mask, *outputs)
        if isinstance(value, Other) and value.dims is None and len(value.shape) == len(field.shape)
        for axis in field.stretchable
        if value.shape[axis] != 1
    ]
    if stretched:
        field = _core._join(first._parameters, fields, [*others, *stretched], field.dims)
    _require_all_dims(field.dims, outputs)
    for value in filter(is_named, outputs):
        _core._common_points(field, value)  # refuses an output with other points than the result
    out = next((value for value in outputs if is_storage(value)), None)
    if out is not None:
        field = out._parameters
        named.append(out)
    for value in (*operands, mask):
        if isinstance(value, Other) and value.dims is None:
            place(value, field.shape, named)
    for value in outputs:
        if isinstance(value, Other) and value.dims is None:
            _require_shape(value, field)
    return field


def common_points(arrays: Sequence[Operand], target: Any) -> list[Operand]:
    """The arrays at the points of `target`, along dimensions whose first index both know.

    Raises ValueError for one that lacks some of them.
    """

    def seen(value: Operand) -> Operand:
        if not is_named(value) or (points := _core._common_points(value, target)) is None:
            return value
        if is_storage(value):
            return value[points]
        value.keep(points)
        return value

    return [seen(value) for value in arrays]


def _require_shape(out: Other, field: _core.Parameters) -> None:
    if out.shape != field.shape:
        raise ValueError(
            f"out is an array of shape {out.shape}, but must have the shape of the result, {field.shape}, for dimensions "
            f"{field.dims}; pass such an array, or a storage, whose dimensions have names"
        )


def _require_all_dims(dims: tuple[str, ...], outputs: Sequence[Operand]) -> None:
    """Every output that has names must have the names of all operands."""
    for value in outputs:
        missing = [name for name in dims if is_named(value) and name not in value.dims]
        if missing:
            raise ValueError(
                f"out has the dimensions {value.dims}, but must have all of {dims}, the names of the operands; it lacks "
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
) -> Any:
    """Reads, works, and marks; what `work` returns. Outputs that were begun are ended, whatever is raised."""
    arrays = [read(value, side, dims) for value in (*operands, mask)]
    count = len(arrays)

    def kernel(xp: Any, *arrays: Any) -> Any:
        return work(xp, arrays[: count - 1], arrays[count:], arrays[count - 1])

    with ExitStack() as written:
        for value in outputs:
            arrays.append(value._write_array(side, dims, whole))
            written.callback(value._written, side)
        return kernel(np, *arrays) if side == "host" else run_on_device(kernel, arrays)


def assign(target: Operand, source: Any, side: Side) -> None:
    """target[...] = source, cast as reductions cast, along the dimensions that `source` does not have.

    Requires that the dimensions fit.
    """
    if is_named(target):
        (source,) = common_points([source], target)

    def work(xp: Any, arrays: Sequence[Any], targets: Sequence[Any], mask: Any) -> None:
        xp.copyto(targets[0], arrays[0], casting="unsafe")

    run(work, [source], True, [target], target.dims, side, whole=True)


# ---- Results of functions that return plain arrays. ----


def stored(value: Any, field: _core.Parameters, dims: tuple[str, ...], side: Side) -> Any:
    """A storage with the parameters `field` and the elements of `value`, whose `dims` may be more than those of `field`."""
    if isinstance(value, (list, tuple)):
        return type(value)(stored(item, field, dims, side) for item in value)
    new = [
        SimpleNamespace(dims=(name,), shape=(extent,))
        for name, extent in zip(dims, value.shape)
        if name not in field.dims
    ]
    made = (_core._join(field, [field], new) if new else field).empty(value.dtype)
    result = made if made.dims == dims else made.transpose([made.dims.index(name) for name in dims])
    assign(result, value, side)
    return result


def fixed(value: Operand) -> Any:
    """Names and extents of an array that does not stretch, because it is written."""
    return SimpleNamespace(dims=value.dims, shape=value.shape, lower=value.lower)


def new_names(dims: tuple[str, ...], count: int) -> tuple[str, ...]:
    """The next free numbers of data dimensions."""
    start = max((int(name) + 1 for name in dims if name.isdigit()), default=0)
    return tuple(str(start + i) for i in range(count))


Room = tuple[tuple[int, ...], np.dtype[Any]]
"""Shape and dtype of what a function of NumPy writes to in place of `out`, so that it computes in the dtype that it chooses for
such an `out`, and refuses what it refuses."""


def room(
    target: Operand, shape: tuple[int, ...] | None = None, dims: tuple[str, ...] | None = None
) -> Room | None:
    """The room for a result of `shape`; None: that of the target, in the order of `dims` if it has names."""
    if target is None:
        return None
    if shape is None:
        shape = target.shape
        if dims is not None and is_named(target):
            _require_all_dims(dims, [target])
            shape = tuple(target.shape[target.dims.index(name)] for name in dims)
    return shape, target.dtype


def placed(value: Any, room: Room) -> Any:
    """`value` as a function with `out` of that shape and dtype would give it. CuPy's functions do not all have it, and two of
    NumPy's ignore it: fft.hfft, fft.ifft2."""
    shape, dtype = room
    if value.shape != shape:
        raise ValueError(
            f"out is an array of shape {shape}, but must have the shape of the result, {value.shape}; pass such an array"
        )
    np.copyto(np.empty(0, dtype), np.empty(0, value.dtype), casting="same_kind")
    return value.astype(dtype)


def delivered(made: Any, out: Any, target: Operand, side: Side, *, stretches: bool = False) -> Any:
    """`made`, or `out` with its elements, repeated along the dimensions that it does not have.

    NumPy stretches what a function of elements computes to the output (`stretches`), and no other result.
    """
    if target is None:
        return made
    if is_named(target):
        _core._join(made._parameters, [], [made if stretches else fixed(made), fixed(target)])
        _require_all_dims(made.dims, [target])
    else:
        _require_shape(target, made._parameters)
    assign(target, made, side)
    return out
