"""A call of a NumPy function with storages among its arguments."""

from __future__ import annotations

import inspect
from collections import OrderedDict
from collections.abc import Callable, Sequence
from functools import cache
from typing import Any, NamedTuple

import numpy as np

from .._stream import run_on_device
from . import _cupy
from ._compute import Room, placed
from ._numpy_defects import around
from ._operands import Operand, by_place, is_array, is_named, is_storage, operand, read
from ._others import Other, Side
from ._reductions import axis_of, name_of
from ._table import Row

_WRITEABLE = 0x0400  # NPY_ARRAY_WRITEABLE
_AXES = frozenset({"axis", "axes", "axis1", "axis2", "source", "destination", "start"})

# Parameters that are a sequence of arrays; an array is the sequence of its parts.
_SEQUENCES = frozenset({"condlist", "choicelist", "choices"})

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


class _Slot(NamedTuple):
    """The place of an array among the arguments."""

    number: int


class Call:
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
        self.signature = signature_of(function)
        self.arguments: dict[str, Any] = dict(self.signature.bind(*arguments, **keywords).arguments)
        out = self.arguments.pop("out", None)
        if isinstance(out, tuple) and len(out) != 1:
            raise ValueError(
                f"out is a tuple of {len(out)}, but must have one entry; pass the output itself"
            )
        self.out = out[0] if isinstance(out, tuple) else out
        self.is_for_others = False  # an operand is another library's array, which exports no memory
        self.arrays: list[Operand] = []
        self.owners: list[str] = []  # the parameter of each array
        self.values = {name: self._argument(value, name) for name, value in self.arguments.items()}

    def _argument(self, value: Any, owner: str) -> Any:
        if owner in _SEQUENCES and (isinstance(value, (list, tuple)) or np.ndim(value) > 0):
            return [self._slots(item, owner) for item in value]
        return self._slots(value, owner)

    def _slots(self, value: Any, owner: str) -> Any:
        """`value` with slots in place of its arrays, which are noted."""
        if isinstance(value, (type, np.dtype)) or callable(value) or owner in _AXES:
            return value
        if isinstance(value, (list, tuple, dict)):
            is_paired = self.row.rule in ("elementwise", "compares") and owner in self.row.paired
            if is_paired and not _holds_array(value):
                return self._slot(Other(value), owner)
            return each(value, lambda item: self._slots(item, owner))
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

    def pair(self, outputs: Sequence[Operand]) -> tuple[Sequence[Operand], tuple[str, ...] | None]:
        """The paired arrays, which lose their unnamed axes, and the order of the result's dimensions."""
        operands, _, order = by_place([self.arrays[i] for i in self.paired], True, outputs)
        for i, array in zip(self.paired, operands):
            self.arrays[i] = array
        return operands, order

    @property
    def first(self) -> Any:
        """The storage that gives the names: the first in the row's first parameter. None if there is none.

        Unnamed axes have the names that another storage of the parameter has at their places.
        """
        found = [
            array
            for array, owner in zip(self.arrays, self.owners)
            if is_storage(array) and owner == self.row.paired[0]
        ]
        if not found or not (new := found[0]._parameters.unnamed):
            return found[0] if found else None
        named = [set(enumerate(array.dims)) for array in found]
        known = {item for item in named[0] if item[0] not in new}
        alike = [
            array
            for array, own in zip(found, named)
            if array.ndim == found[0].ndim and own.issuperset(known)
        ]
        return min(alike, key=lambda array: len(array._parameters.unnamed))

    def argument(self, name: str) -> Any:
        """An argument, or the default."""
        return self.values.get(name, self.signature.parameters[name].default)

    def name_axes(self, dims: tuple[str, ...]) -> None:
        """Numbers in place of the names in `axis` and its like."""
        for name in _AXES.intersection(self.values):
            self.values[name] = numbered(self.values[name], dims)

    def call(self, function: Callable[..., Any], arrays: Sequence[Any], out: Any = None) -> Any:
        """`function` with `arrays` in the places of the call's own."""
        filled = {name: _filled(value, arrays) for name, value in self.values.items()}
        if out is not None and "out" in self.signature.parameters:
            filled["out"] = out
        elif out is not None:
            filled["options"] = {**filled.get("options", {}), "out": out}
        bound = inspect.BoundArguments(self.signature, OrderedDict(filled))
        return function(*bound.args, **bound.kwargs)

    def with_first(self, array: Any) -> Any:
        """What the function returns for `array` in place of the first storage, and the other arrays on the host."""
        first = self.first
        return self.call(self.function, [array if a is first else on_host(a) for a in self.arrays])

    def evaluate(
        self, side: Side, dims: Any = None, shape: Any = None, made: Room | None = None
    ) -> Any:
        """What the function returns for plain arrays: the paired ones in the order of `dims`, and repeated to `shape`. `made`: with
        such an `out`."""
        paired = self.paired if dims is not None else []
        wide = [i for i in paired[1:] if shape is not None and is_named(self.arrays[i])]
        arrays = [read(a, side, dims if i in paired else None) for i, a in enumerate(self.arrays)]

        def kernel(xp: Any, *arrays: Any) -> Any:
            given = [xp.broadcast_to(a, shape) if i in wide else a for i, a in enumerate(arrays)]
            out = np.empty(*made) if made is not None and xp is np else None
            function = around(self.function, out) if xp is np else self._of_cupy(xp, made)
            value = self.call(function, given, out)
            if made is not None and value is not out:
                value = placed(value, made)
            return _own(value, arrays, xp, side)

        return kernel(np, *arrays) if side == "host" else run_on_device(kernel, arrays)

    def _of_cupy(self, xp: Any, made: Room | None) -> Any:
        ufunc = _UFUNCS.get(self.name, getattr(self.function, "__self__", None))
        if self.row.rule != "reduces" or ufunc is None:
            return _cupy.named(xp, self.name)

        def reduce(
            array: Any,
            axis: Any,
            dtype: Any = None,
            keepdims: Any = False,
            where: Any = True,
            **initial: Any,
        ) -> Any:
            options = {"dtype": dtype, "keepdims": keepdims, **initial}
            return _cupy.reduce(xp, ufunc, array, where, axis, options, made)

        return reduce


def _holds_array(value: Any) -> bool:
    if isinstance(value, (list, tuple)):
        return any(_holds_array(item) for item in value)
    return is_array(operand(value)) or hasattr(value, "__array_function__")


def numbered(axis: Any, dims: tuple[str, ...]) -> Any:
    return (
        axis_of(axis, dims)
        if name_of(axis) is not None
        else each(axis, lambda item: numbered(item, dims))
    )


def _filled(value: Any, arrays: Sequence[Any]) -> Any:
    if isinstance(value, _Slot):
        return arrays[value.number]
    return each(value, lambda item: _filled(item, arrays))


def _own(value: Any, arrays: Sequence[Any], xp: Any, side: Side) -> Any:
    """`value` in new memory: what is written to it must not reach a storage, which would not know."""
    if isinstance(value, (list, tuple)):
        return each(value, lambda item: _own(item, arrays, xp, side))
    # `flags.writeable` of what numpy.broadcast_arrays returns is a FutureWarning.
    if not isinstance(value, xp.ndarray) or (side == "host" and not value.flags.num & _WRITEABLE):
        return value
    return value.copy() if any(xp.may_share_memory(value, array) for array in arrays) else value


def each(value: Any, function: Callable[[Any], Any]) -> Any:
    """`function` of each item of a list, tuple or dict; any other value unchanged."""
    if isinstance(value, dict):
        return {key: function(item) for key, item in value.items()}
    if not isinstance(value, (list, tuple)):
        return value
    items = [function(item) for item in value]
    return type(value)(*items) if hasattr(value, "_fields") else type(value)(items)


def on_host(array: Operand) -> np.ndarray[Any, Any]:
    return np.asarray(array if is_storage(array) else array.source)


@cache
def signature_of(function: Callable[..., Any]) -> inspect.Signature:
    if isinstance(function, np.ufunc):
        return inspect.signature(lambda *inputs, **options: None)
    if function is np.where:  # NumPy before 2.4 cannot tell
        return inspect.signature(lambda condition, x=None, y=None, /: None)
    if getattr(function, "__name__", "") == "reduce":
        return inspect.signature(
            lambda array, /, axis=0, dtype=None, out=None, keepdims=False, initial=None, where=True: (
                None
            )
        )
    if function in (np.concatenate, np.concat):
        return inspect.signature(
            lambda arrays, /, axis=0, out=None, *, dtype=None, casting="same_kind": None
        )
    if function is np.copyto:
        return inspect.signature(lambda dst, src, casting="same_kind", where=True: None)
    try:
        return inspect.signature(function)
    except ValueError:
        return inspect.signature(lambda *arrays, **options: None)
