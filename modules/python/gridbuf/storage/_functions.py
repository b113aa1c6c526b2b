"""NumPy's functions on storages: `__array_ufunc__`, and `__array_function__` by the rules of `_table`.

Every rule does the same four things: it finds the arrays among the arguments, brings them up to date on one side, lets NumPy
(or CuPy, on a device) call its own function on plain arrays, and gives the result names. Arrays whose names are paired are brought
to one order of dimensions first. The result is new memory, but for the functions that return views.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import cache
from types import SimpleNamespace
from typing import Any, NoReturn

import numpy as np
from numpy.lib.array_utils import normalize_axis_tuple
from numpy.lib.stride_tricks import as_strided

from .. import _core
from ._call import Call, each, on_host, signature_of
from ._compute import (
    assign,
    common_points,
    compute,
    delivered,
    new_names,
    result_field,
    room,
    stored,
)
from ._operands import (
    Operand,
    by_place,
    decider,
    is_array,
    is_named,
    is_storage,
    operand,
    output,
    sample,
    side_of,
)
from ._others import Side, check_starts, taken
from ._reductions import (
    axes_of,
    axis_of,
    can_reduce_again,
    fit_mask,
    name_of,
    reduce_again,
    reduced,
)
from ._table import ROWS, Row, instead_of
from ._ufuncs import call_again, call_ufunc


def array_ufunc(self: Any, ufunc: np.ufunc, method: str, *inputs: Any, **options: Any) -> Any:
    """`__array_ufunc__`: `__call__` and `reduce`, on storages.

    Raises:
      TypeError: any other method, operands that cannot be reached from one side, or what NumPy says of the dtypes.
      ValueError: dimensions that do not fit together.
      DeviceUnavailableError: work for a real device without CuPy.
    """
    if method == "__call__":
        if ufunc.signature is not None:
            (out,) = options.pop("out", (None,))
            call = Call(ufunc, ufunc.__name__, Row("plain"), inputs, options)
            call.out = out
            return NotImplemented if call.is_for_others else _plain(call)
        if not options:
            return call_again(ufunc, inputs, None)
        if len(options) == 1 and len(options.get("out", ())) == 1:
            return call_again(ufunc, inputs, options["out"][0])
        return call_ufunc(ufunc, inputs, **options)
    if method == "reduce":
        if can_reduce_again(inputs, options):
            return reduce_again(ufunc, *inputs, **options)
        name, row = f"{ufunc.__name__}.reduce", Row("reduces", ("array", "where"))
        call = Call(ufunc.reduce, name, row, inputs, options)
        return NotImplemented if call.is_for_others else _reduces(call)
    if method in ("accumulate", "outer", "reduceat") and not options.get("out"):
        name = f"{ufunc.__name__}.{method}"
        call = Call(getattr(ufunc, method), name, Row("plain"), inputs, options)
        return NotImplemented if call.is_for_others else _plain(call)
    if any(_may_handle(value) for value in (*inputs, *options.get("out", ()))):
        return NotImplemented
    _refuse(f"{ufunc.__name__}.{method}")


def array_function(
    self: Any,
    function: Callable[..., Any],
    types: Sequence[type],
    arguments: tuple[Any, ...],
    keywords: dict[str, Any],
) -> Any:
    """`__array_function__`. TypeError for functions that storages do not have."""
    name = _name_of(function)
    row = ROWS.get(name)
    if row is not None and row.rule in _RULES:
        call = Call(function, name, row, arguments, keywords)
        return NotImplemented if call.is_for_others else _RULES[row.rule](call)
    if not all(issubclass(kind, (np.ndarray, _core.StorageBase)) for kind in types):
        return NotImplemented
    _refuse(name)


def _refuse(name: str) -> NoReturn:
    raise TypeError(f"storages do not have numpy.{name}; use {instead_of(name)}")


def _may_handle(value: Any) -> bool:
    """Whether a value is another type's array, which may handle the ufunc."""
    return (
        hasattr(value, "__array_ufunc__")
        and not isinstance(value, (np.ndarray, np.generic))
        and not is_storage(value)
    )


def copyto(dst: Any, src: Any, casting: Any = "same_kind", where: Any = True) -> Any:
    """`numpy.copyto` and `gridbuf.copyto` with a storage. NotImplemented for operands that export no memory."""
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


@cache
def _name_of(function: Callable[..., Any]) -> str:
    """The name below numpy, such as "linalg.norm"."""
    module = (getattr(function, "__module__", None) or "numpy").removeprefix("numpy")
    name = getattr(function, "__name__", str(function))
    return f"{module}.{name}".removeprefix(".")


# ---- Results. ----


def _kept(value: Any, first: Any, owner: Any, side: Side) -> Any:
    """A storage like `first` with the elements of `value`. A dimension whose extent has changed has no halo."""
    if isinstance(value, (list, tuple)):
        return each(value, lambda item: _kept(item, first, owner, side))
    if value.ndim != first.ndim:
        return value
    field = _core._join(owner._parameters, [first._parameters], [])
    return stored(value, field._resized(value.shape), first.dims, side)


def _moved(made: Any, axis: Any) -> Any:
    """`made` without the first index of an axis along which a function has moved points; None: all."""
    moved = made.dims if axis is None else [made.dims[axis_of(axis, made.dims)]]
    lower = [None if dim in moved else start for dim, start in zip(made.dims, made.lower)]
    return made if lower == [*made.lower] else _core._storage_as_storage(made, lower=lower)


def _of_kind(field: _core.Parameters, call: Call, target: Operand) -> _core.Parameters:
    """`field`, for a storage that can be written on the side of the call: all arrays decide on it, not only those with names."""
    if len(call.arrays) == 1 and target is None:
        return field
    return _core._join(decider([*call.arrays, target])._parameters, [field], [])


# ---- The rules. ----


def _elementwise(call: Call) -> Any:
    if call.name == "clip":
        return _clip(call)
    if call.name == "nan_to_num" and not call.values.pop("copy", True):
        (array,) = call.arrays[:1]
        copyto(array, _elementwise(call))
        return array
    paired = call.paired
    if not any(is_storage(call.arrays[i]) for i in paired) or call.arguments.keys() == {
        "condition"
    }:
        return _plain(call)  # numpy.where(condition) is numpy.nonzero
    target = output(call.out)
    side = side_of(call.arrays, [target])
    with taken(side, call.arrays, [target]):
        operands, order = call.pair([target] if is_array(target) else [])
        field = _of_kind(result_field(operands, True, [], order), call, target)
        for i, array in zip(call.paired, common_points(operands, field)):
            call.arrays[i] = array
        value = call.evaluate(side, field.dims, made=room(target, field.shape))
        made = stored(value, field, field.dims, side)
        return delivered(made, call.out, target, side, stretches=True)


def _clip(call: Call) -> Any:
    """`numpy.clip`, whose options are those of a ufunc. `min` and `max` are other names of `a_min` and `a_max`."""
    given = dict(call.arguments)
    options = given.pop("kwargs", {})
    call.function(**dict.fromkeys(given, 0))  # refuses what NumPy refuses
    bounds = (given.get(name, given.get(f"a_{name}")) for name in ("min", "max"))
    out = () if call.out is None else (call.out,)
    return call_ufunc(_CLIP, (given["a"], *bounds), out, **options)


class _Clip:
    """`numpy.clip` with the interface of a ufunc."""

    __name__ = "clip"
    nout = 1

    def __call__(self, *arrays: Any, out: tuple[Any, ...] = (None,), **options: Any) -> Any:
        return np.clip(*arrays, out=out[0], **options)


_CLIP: Any = _Clip()


def _reduces(call: Call) -> Any:
    array, target = call.first, output(call.out)
    if array is None:
        first = call.arguments[call.row.paired[0]]
        raise TypeError(
            f"numpy.{call.name} reduces a {type(first).__name__}, whose dimensions have no names, but out or where is a "
            "storage; wrap it with gridbuf.storage.as_storage(array, dims=...)"
        )
    if target is NotImplemented:
        return NotImplemented
    axis, keepdims = call.argument("axis"), call.values.get("keepdims", False)
    call.values.setdefault("axis", axis)
    keepdims = bool(keepdims) and keepdims is not np._NoValue
    axes = axes_of(axis, array.dims)
    call.name_axes(array.dims)
    call.values.pop("overwrite_input", None)
    side = side_of(call.arrays, [target])
    with taken(side, call.arrays, [target]):
        for i in call.paired[1:]:
            if is_named(call.arrays[i]) or call.owners[i] == "where":
                call.arrays[i] = fit_mask(call.arrays[i], array)
        left = _of_kind(array._parameters.reduced(axes, keepdims), call, target)
        more = np.shape(call.arguments["q"]) if "q" in call.arguments else ()
        place = room(target, (*more, *left.shape))
        # NumPy's `all` and `any` crash with such an output: docs/limits.md
        if place is not None and place[1].hasobject:
            raise TypeError(
                f"out has the type {place[1]}, but must be a type without Python objects; use a number or a date"
            )
        value = call.evaluate(side, array.dims, array.shape, place)
        made = reduced(value, left, side, target is None)
        return delivered(made, call.out, target, side)


# Functions that join along a dimension: it, and the least number of dimensions with names that have it.
_JOINED = {"vstack": (0, 2), "hstack": (1, 2), "column_stack": (1, 2), "dstack": (2, 3)}


def _joins(call: Call) -> Any:
    """`concatenate`, and the functions that are `concatenate` of arrays with enough dimensions."""
    if call.name == "append":
        arrays = (call.arguments["arr"], call.arguments["values"])
        return np.concatenate(arrays, axis=call.argument("axis"))
    if call.name not in _JOINED:
        return _along(call)
    (axis, least), options = _JOINED[call.name], dict(call.arguments)
    arrays = tuple(options.pop("tup"))
    ranks = set(map(np.ndim, arrays))
    if call.name == "hstack" and ranks == {1}:
        axis, least = 0, 1
    return np.concatenate(arrays, axis=axis, **options) if min(ranks) >= least else _plain(call)


def _along(call: Call) -> Any:
    first = call.first
    if first is None:
        return _plain(call)
    is_flat = call.row.rule != "keeps" and call.argument("axis") is None and first.ndim != 1
    # An array without dimensions becomes a vector. numpy.take drops the axis, or makes several of it.
    is_flat |= call.row.rule != "keeps" and first.ndim == 0
    is_flat |= call.name == "take" and np.ndim(call.arguments["indices"]) != 1
    call.name_axes(first.dims)
    joined = None
    if call.row.rule == "joins":
        with suppress(TypeError, IndexError):  # NumPy's errors say more.
            joined = first.dims[call.argument("axis")]
    with _pairing(call, first, joined) as (side, target):
        value = call.evaluate(
            side, first.dims, made=room(target, dims=None if is_flat else first.dims)
        )
        if is_flat:
            return _placed(value, call.out, target, side)
        made = _kept(value, first, decider([*call.arrays, target]), side)
        if call.row.rule == "along" and "cum" not in call.name and is_storage(made):
            made = _moved(made, call.argument("axis"))
        return delivered(made, call.out, target, side)


def _stacks(call: Call) -> Any:
    first = call.first
    if first is None:
        return _plain(call)
    axis, (name,) = call.argument("axis"), new_names(first.dims, 1)
    if (given := name_of(axis)) is not None:
        name, axis = given, first.ndim
    call.values["axis"] = axis
    place = range(first.ndim + 1)[axis] if -first.ndim - 1 <= axis <= first.ndim else 0
    dims = (*first.dims[:place], name, *first.dims[place:])
    with _pairing(call, first) as (side, target):
        value = call.evaluate(side, first.dims, made=room(target, dims=dims))
        made = stored(value, _of_kind(first._parameters, call, target), dims, side)
        return delivered(made, call.out, target, side)


@contextmanager
def _pairing(call: Call, first: Any, joined: str | None = None) -> Iterator[tuple[Side, Operand]]:
    """The side and the output of a call whose paired arrays must all have the dimensions of `first`."""
    target = output(call.out)
    side = side_of(call.arrays, [target])
    with taken(side, call.arrays, [target]):
        check_starts([call.arrays[i] for i in call.paired if is_named(call.arrays[i])], joined)
        for i in call.paired:
            found = call.arrays[i]
            if not is_named(found):
                continue
            (call.arrays[i],), _, _ = by_place([found], True, [first])
            names = call.arrays[i].dims
            if not set(names) <= set(first.dims) or len(found.dims) != len(first.dims):
                raise ValueError(
                    f"numpy.{call.name} has an array with the dimensions {found.dims}, but must have {first.dims} in "
                    "all of them; add the missing ones with storage[..., None], or select a point of the others"
                )
        yield side, target


# The key that gives an array of so many dimensions the number that the function's name has.
_KEYS: dict[str, list[tuple[Any, ...]]] = {
    "atleast_1d": [(None,)],
    "atleast_2d": [(None, None), (None, ...)],
    "atleast_3d": [(None, None, None), (None, ..., None), (..., None)],
}


def _view(call: Call) -> Any:
    if call.name in _KEYS:
        arrays = call.arguments.get("arys", ())
        keys = dict(enumerate(_KEYS[call.name]))
        seen = [a[keys.get(a.ndim, ...)] if is_storage(a) else call.function(a) for a in arrays]
        return tuple(seen) if len(seen) > 1 else seen[0]
    storage = call.first
    if storage is None:
        return _plain(call)
    call.name_axes(storage.dims)
    if call.name == "expand_dims":
        axis = call.values["axis"]
        ndim = storage.ndim + (len(axis) if isinstance(axis, tuple) else 1)
        new = normalize_axis_tuple(axis, ndim)
        return storage[tuple(None if i in new else slice(None) for i in range(ndim))]
    # NumPy rearranges a picture of the storage, whose strides are the numbers of its axes.
    picture = as_strided(np.zeros(1, "i1"), storage.shape, range(1, storage.ndim + 1))
    strides = call.with_first(picture).strides
    order = [abs(stride) - 1 for stride in strides]
    steps = {abs(stride) - 1: slice(None, None, 1 if stride > 0 else -1) for stride in strides}
    left = [axis for axis in range(storage.ndim) if axis in steps]
    seen = storage[(..., *(steps.get(axis, 0) for axis in range(storage.ndim)))]
    return seen.transpose([left.index(axis) for axis in order])


def _parts(call: Call) -> Any:
    storage = call.first
    if storage is None:
        return _plain(call)
    if call.name in ("vsplit", "hsplit", "dsplit"):
        axis = ("vsplit", "hsplit", "dsplit").index(call.name) if storage.ndim > 1 else 0
        call.function(np.broadcast_to(0, storage.shape), 1)  # refuses what NumPy refuses
        call.function, call.signature = np.split, signature_of(np.split)
    else:
        call.name_axes(storage.dims)
        axis = axis_of(call.argument("axis"), storage.dims)
    call.values["axis"] = 0
    whole = (slice(None),) * axis
    parts = call.with_first(np.arange(storage.shape[axis]))
    if call.name == "unstack":
        return tuple(storage[(*whole, int(i))] for i in parts)
    return [
        storage[(*whole, slice(part[0], part[-1] + 1) if part.size else slice(0))] for part in parts
    ]


def _compares(call: Call) -> bool:
    # A list is brought to where the arrays are.
    side = side_of(
        [a for a in call.arrays if not isinstance(getattr(a, "source", a), (list, tuple))], []
    )
    with taken(side, call.arrays, []):
        named = [array for array in call.arrays if is_named(array)]
        check_starts(named)
        names = {frozenset(array.dims) for array in named}
        # One name with two kinds is an error; all else that does not fit is not equal.
        points = [SimpleNamespace(dims=a.dims, shape=(1,) * len(a.dims)) for a in named]
        _core._join(decider(call.arrays)._parameters, [], points)
        try:
            operands, order = call.pair([])
            field = result_field(operands, True, [], order)
        except ValueError:
            if call.name == "allclose":
                raise
            return False
        if call.name == "array_equal" and len(names) > 1:
            return False
        return bool(call.evaluate(side, field.dims))


def _like(call: Call) -> Any:
    storage, *fill_value = [
        call.arguments[name]
        for name in call.arguments
        if name in ("x", "a", "prototype", "fill_value")
    ]
    if not is_storage(storage):
        return _plain(call)
    if call.arguments.get("order") in ("C", "F"):
        raise TypeError(
            f"numpy.{call.name} of a storage takes no order; use gridbuf.storage.zeros_like(storage, layout=storage.layout)"
        )
    shape = call.arguments.get("shape")
    if shape is not None:
        shape = tuple(np.broadcast_shapes(shape))
        if len(shape) != storage.ndim:
            raise TypeError(
                f"shape is {shape}, but must have {storage.ndim} extents for the names of the storage; use "
                f"gridbuf.storage.zeros({shape})"
            )
        storage = storage._parameters._resized(shape).empty()
    if call.name in ("copy", "astype"):
        options = {
            name: call.arguments[name] for name in ("dtype", "copy") if name in call.arguments
        }
        return getattr(storage, call.name)(**options)
    make = getattr(_core, f"_storage_{call.name}")
    return make(storage, *fill_value, dtype=call.arguments.get("dtype"))


def _properties(call: Call) -> Any:
    storages = [array for array in call.arrays if is_storage(array)]
    call.name_axes(storages[0].dims)
    pictures = [
        np.broadcast_to(np.empty((), a.dtype), a.shape) if is_storage(a) else a.source
        for a in call.arrays
    ]
    return call.call(call.function, pictures)


def _host(call: Call) -> Any:
    return call.call(call.function, [*map(on_host, call.arrays)])


def _plain(call: Call) -> Any:
    storages = [array for array in call.arrays if is_storage(array)]
    if len(storages) == 1:
        call.name_axes(storages[0].dims)
    target = output(call.out)
    side = side_of(call.arrays, [target])
    with taken(side, call.arrays, [target]):
        check_starts(filter(is_named, call.arrays))
        value = call.evaluate(side, made=room(target))
        return _placed(value, call.out, target, side)


def _placed(value: Any, out: Any, target: Operand, side: Side) -> Any:
    """`value`, or `out` with its elements by position."""
    if target is None:
        return value
    assign(target, value, side)
    return out


_RULES: dict[str, Callable[[Call], Any]] = {
    "elementwise": _elementwise,
    "reduces": _reduces,
    "keeps": _along,
    "along": _along,
    "view": _view,
    "joins": _joins,
    "stacks": _stacks,
    "parts": _parts,
    "compares": _compares,
    "like": _like,
    "properties": _properties,
    "host": _host,
    "plain": _plain,
    "writes": lambda call: copyto(**call.arguments),
}
