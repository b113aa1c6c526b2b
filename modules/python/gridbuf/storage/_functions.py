"""NumPy's functions on storages: `__array_ufunc__`, and `__array_function__` by the rules of `_table`.

Every rule does the same four things: it finds the arrays among the arguments, brings them up to date on one side, lets NumPy
(or CuPy, on a device) call its own function on plain arrays, and gives the result names. Arrays whose names are paired are brought
to one order of dimensions first. The result is new memory, but for the functions that return views.
"""

from __future__ import annotations

import inspect
from collections import OrderedDict
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import cache
from typing import Any, NamedTuple

import numpy as np
from numpy.lib.array_utils import normalize_axis_tuple
from numpy.lib.stride_tricks import as_strided

from .. import _core
from .._stream import run_on_device
from . import _cupy
from ._compute import assign, compute, delivered, new_names, result_field, stored
from ._operands import (
    Operand,
    decider,
    is_array,
    is_named,
    is_storage,
    named_by_place,
    operand,
    output,
    read,
    sample,
    side_of,
)
from ._others import Other, Side, taken
from ._reductions import axes_of, axis_of, fit_mask, name_of, reduce, reduced
from ._refusals import refuse, refused
from ._table import ROWS, Row
from ._ufuncs import call_again, call_ufunc, in_order

__all__ = ["array_function", "array_ufunc", "copyto"]

_AXES = frozenset({"axis", "axes", "axis1", "axis2", "source", "destination", "start"})


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
            call = _Call(ufunc, ufunc.__name__, Row("plain"), inputs, options)
            call.out = out
            return NotImplemented if call.is_for_others else _plain(call)
        if not options:
            return call_again(ufunc, inputs, None)
        if len(options) == 1 and len(options.get("out", ())) == 1:
            return call_again(ufunc, inputs, options["out"][0])
        return call_ufunc(ufunc, inputs, **options)
    if method == "reduce":
        return reduce(ufunc, *inputs, **options)
    return refused(f"numpy.{ufunc.__name__}.{method}", [*inputs, *options.get("out", ())])


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
        call = _Call(function, name, row, arguments, keywords)
        return NotImplemented if call.is_for_others else _RULES[row.rule](call)
    if not all(issubclass(kind, (np.ndarray, _core.StorageBase)) for kind in types):
        return NotImplemented
    refuse(f"numpy.{name}")


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


@cache
def _signature_of(function: Callable[..., Any]) -> inspect.Signature:
    if isinstance(function, np.ufunc):
        return inspect.signature(lambda *inputs, **options: None)
    if function is np.where:  # NumPy before 2.4 cannot tell
        return inspect.signature(lambda condition, x=None, y=None, /: None)
    if function in (np.concatenate, np.concat):
        return inspect.signature(
            lambda arrays, /, axis=0, out=None, *, dtype=None, casting="same_kind": None
        )
    if function is np.copyto:
        return inspect.signature(copyto)
    try:
        return inspect.signature(function)
    except ValueError:
        return inspect.signature(lambda *arrays, **options: None)


# ---- A call. ----


class _Slot(NamedTuple):
    """The place of an array among the arguments."""

    number: int


class _Call:
    """A call of a function: its arguments by name, and the arrays among them."""

    def __init__(
        self,
        function: Callable[..., Any],
        name: str,
        row: Row,
        arguments: tuple[Any, ...],
        keywords: dict[str, Any],
    ) -> None:
        self.function, self.name, self.row = function, name, row
        self.signature = _signature_of(function)
        self.arguments = dict(self.signature.bind(*arguments, **keywords).arguments)
        out = self.arguments.pop("out", None)
        self.out = out[0] if isinstance(out, tuple) else out
        self.is_for_others = False  # an operand is another library's array, which exports no memory
        self.arrays: list[Operand] = []
        self.owners: list[str] = []  # the parameter of each array
        self.values = {name: self._slots(value, name) for name, value in self.arguments.items()}

    def _slots(self, value: Any, owner: str) -> Any:
        """`value` with slots in place of its arrays, which are noted."""
        if isinstance(value, (type, np.dtype)) or callable(value):
            return value
        if isinstance(value, (list, tuple, dict)):
            count = len(self.arrays)
            made = _each(value, lambda item: self._slots(item, owner))
            is_array_like = self.row.rule == "elementwise" and owner in self.row.paired
            return (
                made
                if not is_array_like or len(self.arrays) > count
                else self._slot(Other(value), owner)
            )
        array = operand(value)
        if is_array(array):
            return self._slot(array, owner)
        self.is_for_others |= array is NotImplemented or hasattr(array, "__array_function__")
        return value

    def _slot(self, array: Operand, owner: str) -> _Slot:
        self.arrays.append(array)
        self.owners.append(owner)
        return _Slot(len(self.arrays) - 1)

    @property
    def paired(self) -> list[int]:
        """The arrays whose dimensions are paired by name."""
        return [i for i, owner in enumerate(self.owners) if owner in self.row.paired]

    @property
    def first(self) -> Any:
        """The storage that gives the names: the first in the row's first parameter. None if there is none."""
        found = zip(self.arrays, self.owners)
        return next(
            (a for a, owner in found if is_storage(a) and owner == self.row.paired[0]), None
        )

    def argument(self, name: str) -> Any:
        """An argument, or the default."""
        return self.values.get(name, self.signature.parameters[name].default)

    def name_axes(self, dims: tuple[str, ...]) -> None:
        """Numbers in place of the names in `axis` and its like."""
        for name in _AXES.intersection(self.values):
            self.values[name] = _numbered(self.values[name], dims)

    def call(self, function: Callable[..., Any], arrays: Sequence[Any]) -> Any:
        """`function` with `arrays` in the places of the call's own."""
        filled = {name: _filled(value, arrays) for name, value in self.values.items()}
        bound = inspect.BoundArguments(self.signature, OrderedDict(filled))
        return function(*bound.args, **bound.kwargs)

    def evaluate(self, side: Side, dims: Any = None, shape: Any = None) -> Any:
        """What the function returns for plain arrays: the paired ones in the order of `dims`, and repeated to `shape`."""
        paired = self.paired if dims is not None else []
        wide = [i for i in paired[1:] if shape is not None and is_named(self.arrays[i])]
        arrays = [read(a, side, dims if i in paired else None) for i, a in enumerate(self.arrays)]

        def kernel(xp: Any, *arrays: Any) -> Any:
            given = [xp.broadcast_to(a, shape) if i in wide else a for i, a in enumerate(arrays)]
            function = self.function if xp is np else _cupy.named(xp, self.name)
            return _own(self.call(function, given), arrays, xp, side)

        return kernel(np, *arrays) if side == "host" else run_on_device(kernel, arrays)


def _numbered(axis: Any, dims: tuple[str, ...]) -> Any:
    return (
        axis_of(axis, dims)
        if name_of(axis) is not None
        else _each(axis, lambda item: _numbered(item, dims))
    )


def _filled(value: Any, arrays: Sequence[Any]) -> Any:
    if isinstance(value, _Slot):
        return arrays[value.number]
    return _each(value, lambda item: _filled(item, arrays))


def _own(value: Any, arrays: Sequence[Any], xp: Any, side: Side) -> Any:
    """`value` in new memory: what is written to it must not reach a storage, which would not know."""
    if isinstance(value, (list, tuple)):
        return _each(value, lambda item: _own(item, arrays, xp, side))
    if not isinstance(value, xp.ndarray) or (side == "host" and not value.flags.writeable):
        return value
    return value.copy() if any(xp.may_share_memory(value, array) for array in arrays) else value


def _each(value: Any, function: Callable[[Any], Any]) -> Any:
    """`function` of each item of a list, tuple or dict; any other value unchanged."""
    if isinstance(value, dict):
        return {key: function(item) for key, item in value.items()}
    if not isinstance(value, (list, tuple)):
        return value
    items = [function(item) for item in value]
    return type(value)(*items) if hasattr(value, "_fields") else type(value)(items)


# ---- Results. ----


def _kept(value: Any, first: Any, owner: Any, side: Side) -> Any:
    """A storage like `first` with the elements of `value`. A dimension whose extent has changed has no halo."""
    if isinstance(value, (list, tuple)):
        return _each(value, lambda item: _kept(item, first, owner, side))
    if value.ndim != first.ndim:
        return value
    if value.shape == first.shape:
        return stored(
            value, _core._join(owner._parameters, [first._parameters], []), first.dims, side
        )
    same = [a == b for a, b in zip(value.shape, first.shape)]
    made = _core._storage_empty(
        value.shape,
        value.dtype,
        dims=first.dims,
        layout=first.layout,
        alignment_size=first.alignment_size,
        halo=[width if is_same else 0 for width, is_same in zip(first.halo, same)],
        aligned_index=[i if is_same else 0 for i, is_same in zip(first.aligned_index, same)],
        device=owner.device,
        managed=owner.managed,
    )
    assign(made, value, side)
    return made


# ---- The rules. ----


def _elementwise(call: _Call) -> Any:
    paired = call.paired
    if not any(is_storage(call.arrays[i]) for i in paired) or call.arguments.keys() == {
        "condition"
    }:
        return _plain(call)  # numpy.where(condition) is numpy.nonzero
    target = output(call.out)
    operands, order = named_by_place([call.arrays[i] for i in paired], (target,))
    for i, array in zip(paired, operands):
        call.arrays[i] = array
    side = side_of(call.arrays, [target])
    with taken(side, call.arrays, [target]):
        field = result_field(operands, True, [])
        value = call.evaluate(side, field.dims)
        made = stored(value, field, field.dims, side)
        return delivered(made if order is None else in_order(made, order), call.out, target, side)


def _reduces(call: _Call) -> Any:
    array = call.first
    axis, keepdims = call.argument("axis"), call.values.get("keepdims", False)
    keepdims = bool(keepdims) and keepdims is not np._NoValue
    ufunc = _UFUNCS.get(call.name)
    if ufunc is not None or array is None:
        options = {
            n: call.arguments[n]
            for n in ("where", "initial")
            if call.arguments.get(n, np._NoValue) is not np._NoValue
        }
        first = call.arguments[call.row.paired[0]]
        dtype = call.arguments.get("dtype")
        return reduce(ufunc or np.add, first, axis, dtype, (call.out,), keepdims, **options)
    axes = axes_of(axis, array.dims)
    call.name_axes(array.dims)
    call.values.pop("overwrite_input", None)
    target = output(call.out)
    side = side_of(call.arrays, [target])
    with taken(side, call.arrays, [target]):
        for i in call.paired[1:]:
            fit_mask(call.arrays[i], array)
        value = call.evaluate(side, array.dims, array.shape)
        left = array._parameters.reduced(axes, keepdims)
        made = reduced(value, left, side, target is None)
        return delivered(made, call.out, target, side)


def _along(call: _Call) -> Any:
    first = call.first
    if first is None:
        return _plain(call)
    is_flat = call.row.rule != "keeps" and call.argument("axis") is None and first.ndim != 1
    call.name_axes(first.dims)
    joined = None
    if call.row.rule == "joins":
        with suppress(TypeError, IndexError):  # NumPy's errors say more.
            joined = first.dims[call.argument("axis")]
    with _pairing(call, first, joined) as (side, target):
        value = call.evaluate(side, first.dims)
        if is_flat:
            return _placed(value, call.out)
        made = _kept(value, first, decider(call.arrays), side)
        return delivered(made, call.out, target, side)


def _stacks(call: _Call) -> Any:
    first = call.first
    if first is None:
        return _plain(call)
    axis, (name,) = call.argument("axis"), new_names(first.dims, 1)
    if isinstance(axis, str):
        name, axis = axis, first.ndim
    call.values["axis"] = axis
    place = range(first.ndim + 1)[axis] if -first.ndim - 1 <= axis <= first.ndim else 0
    with _pairing(call, first) as (side, target):
        value = call.evaluate(side, first.dims)
        field = _core._join(decider(call.arrays)._parameters, [first._parameters], [])
        made = stored(value, field, (*first.dims[:place], name, *first.dims[place:]), side)
        return delivered(made, call.out, target, side)


@contextmanager
def _pairing(call: _Call, first: Any, joined: str | None = None) -> Iterator[tuple[Side, Operand]]:
    """The side and the output of a call whose paired arrays must all have the dimensions of `first`."""
    target = output(call.out)
    side = side_of(call.arrays, [target])
    with taken(side, call.arrays, [target], joined):
        for i in call.paired:
            found = call.arrays[i]
            if is_named(found) and set(found.dims) != set(first.dims):
                raise ValueError(
                    f"numpy.{call.name} has an array with the dimensions {found.dims}, but must have {first.dims} in "
                    "all of them; add the missing ones with storage[..., None], or select a point of the others"
                )
        yield side, target


def _view(call: _Call) -> Any:
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
    strides = call.call(call.function, [picture]).strides
    order = [abs(stride) - 1 for stride in strides]
    steps = {abs(stride) - 1: slice(None, None, 1 if stride > 0 else -1) for stride in strides}
    left = [axis for axis in range(storage.ndim) if axis in steps]
    seen = storage[(..., *(steps.get(axis, 0) for axis in range(storage.ndim)))]
    return seen.transpose([left.index(axis) for axis in order])


def _parts(call: _Call) -> Any:
    storage = call.first
    if storage is None:
        return _plain(call)
    call.name_axes(storage.dims)
    (axis,) = axes_of(call.argument("axis"), storage.dims)
    call.values["axis"] = 0
    whole = (slice(None),) * axis
    parts = call.call(call.function, [np.arange(storage.shape[axis])])
    if call.name == "unstack":
        return tuple(storage[(*whole, int(i))] for i in parts)
    return [
        storage[(*whole, slice(part[0], part[-1] + 1) if part.size else slice(0))] for part in parts
    ]


def _compares(call: _Call) -> bool:
    side = side_of(call.arrays, [])
    with taken(side, call.arrays, []):
        names = {frozenset(array.dims) for array in call.arrays if is_named(array)}
        try:
            field = result_field(call.arrays, True, [])
        except ValueError:
            if call.name == "allclose":
                raise
            return False
        if call.name == "array_equal" and len(names) > 1:
            return False
        return bool(call.evaluate(side, field.dims))


def _like(call: _Call) -> Any:
    storage, *fill_value = [
        call.arguments[name]
        for name in call.arguments
        if name in ("x", "a", "prototype", "fill_value")
    ]
    if not is_storage(storage):
        return _plain(call)
    shape = call.arguments.get("shape")
    if call.arguments.get("order") in ("C", "F") or (
        shape is not None and tuple(shape) != storage.shape
    ):
        raise TypeError(
            f"numpy.{call.name} of a storage takes no order and no other shape; pass the layout and the shape to a function "
            "of gridbuf.storage"
        )
    if call.name in ("copy", "astype"):
        options = {
            name: call.arguments[name] for name in ("dtype", "copy") if name in call.arguments
        }
        return getattr(storage, call.name)(**options)
    make = getattr(_core, f"_storage_{call.name}")
    return make(storage, *fill_value, dtype=call.arguments.get("dtype"))


def _properties(call: _Call) -> Any:
    storages = [array for array in call.arrays if is_storage(array)]
    call.name_axes(storages[0].dims)
    return call.call(
        call.function,
        [
            np.broadcast_to(np.empty((), a.dtype), a.shape) if is_storage(a) else a.source
            for a in call.arrays
        ],
    )


def _host(call: _Call) -> Any:
    return call.call(
        call.function, [np.asarray(a if is_storage(a) else a.source) for a in call.arrays]
    )


def _plain(call: _Call) -> Any:
    storages = [array for array in call.arrays if is_storage(array)]
    if len(storages) == 1:
        call.name_axes(storages[0].dims)
    side = side_of(call.arrays, [output(call.out)])
    with taken(side, call.arrays, []):
        value = call.evaluate(side)
    return _placed(value, call.out)


def _placed(value: Any, out: Any) -> Any:
    """`value`, or `out` with its elements by position."""
    if out is None:
        return value
    np.copyto(np.empty(0, out.dtype), np.empty(0, value.dtype), casting="same_kind")
    out[...] = value
    return out


_UFUNCS: dict[str, np.ufunc] = {
    "all": np.logical_and,
    "amax": np.maximum,
    "amin": np.minimum,
    "any": np.logical_or,
    "max": np.maximum,
    "min": np.minimum,
    "prod": np.multiply,
    "sum": np.add,
}

_RULES: dict[str, Callable[[_Call], Any]] = {
    "elementwise": _elementwise,
    "reduces": _reduces,
    "keeps": _along,
    "along": _along,
    "view": _view,
    "joins": _along,
    "stacks": _stacks,
    "parts": _parts,
    "compares": _compares,
    "like": _like,
    "properties": _properties,
    "host": _host,
    "plain": _plain,
    "writes": lambda call: copyto(**call.arguments),
}
