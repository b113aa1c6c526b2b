"""The GHEX engine: GHEX has the patterns, and packs and sends in C++.

GHEX has compiled what it takes: fields of one to four dimensions, of five dtypes, here in memory that the host reaches. The
other engine takes fields and kinds of exchange that GHEX cannot take (`why_not`). Fields of one dtype and layout travel
together.

GHEX has no message that says "I failed". So a rank that fails exchanges scratch memory, and a reduction next to the
exchange tells all ranks.
"""

from __future__ import annotations

import importlib.util
import weakref
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from .. import _core
from . import _fields
from ._failures import HaloExchangeError
from ._fields import Spec
from ._libraries import ghex_module, mpi_module

if TYPE_CHECKING:
    from ._decomposition import Decomposition

NOT_INSTALLED = "GHEX is not installed"
_DTYPES = frozenset(map(np.dtype, ("float64", "float32", "bool", "int32", "int64")))
_MOST_DIMENSIONS = 4
_NOT_CONTIGUOUS = "GHEX needs a dimension whose items are contiguous"
_Layout = tuple[int, ...]
Widths = tuple[tuple[int, int], ...]


def why_not(
    grid: Decomposition, specs: Sequence[Spec], fields: Sequence[Any], corners: bool
) -> str | None:
    """Why GHEX cannot serve these fields; None if it can."""
    if grid._node is not None:
        return "the decomposition has shared=True, and GHEX does not read shared memory"
    if importlib.util.find_spec("ghex") is None:
        return f"{NOT_INSTALLED}: pip install ghex"
    if not corners:
        return "corners=False, and GHEX always exchanges with diagonal neighbours"
    for spec, field in zip(specs, fields, strict=True):
        if reason := _why_not(grid, spec, field):
            return f"field {spec.number}: {reason}"
    return None


def _why_not(grid: Decomposition, spec: Spec, field: Any) -> str | None:
    if not _fields.is_on_host(field):
        return f"a {type(field).__name__} is on a device, and only its halo is to be copied"
    if spec.dtype not in _DTYPES:
        return f"GHEX has no dtype {spec.dtype}"
    if not 1 <= len(spec.shape) <= _MOST_DIMENSIONS:
        return f"GHEX takes 1 to {_MOST_DIMENSIONS} dimensions, not {len(spec.shape)}"
    if missing := [d for d in grid.dims if d not in spec.dims]:
        return f"its dims {spec.dims} lack {missing}, which the decomposition cuts"
    if 0 in spec.domain:
        return "its domain is empty"
    array = field.to_numpy()
    if any(stride <= 0 or stride % spec.dtype.itemsize for stride in array.strides):
        return f"strides {array.strides} are not positive multiples of the item's {spec.dtype.itemsize} bytes"
    if _strides_for_ghex(array) is None:
        return f"{_NOT_CONTIGUOUS}: its strides are {array.strides}"
    layout = _layout_of(_as_ghex_takes_it(array))
    if len(layout) == _MOST_DIMENSIONS and layout[0] == 2:  # noqa: PLR2004 (a rank, not a quantity)
        return f"GHEX 0.9.0 was built without the layout map {layout}"
    return None


class _Group:
    """Fields of one kind, which one call of GHEX exchanges: its pattern, communication object and fields' places."""

    def __init__(self, grid: Decomposition, spec: Spec, widths: Widths) -> None:
        MPI = mpi_module()  # noqa: N806 (its name)
        regular = ghex_module("structured.regular")
        sets = ghex_module("structured.cartesian_sets")
        cut = [dim in grid.extents for dim in spec.dims]
        starts = [grid.starts.get(dim, 0) for dim in spec.dims]
        whole = sets.ProductSet(
            *(
                sets.UnitRange(0, grid.extents.get(d, n))
                for d, n in zip(spec.dims, spec.domain, strict=True)
            )
        )
        own = sets.ProductSet(
            *(sets.UnitRange(s, s + n) for s, n in zip(starts, spec.domain, strict=True))
        )
        halos = tuple(width if c else (0, 0) for width, c in zip(widths, cut, strict=True))
        periodic = tuple(grid.periodic.get(dim, False) for dim in spec.dims)
        # A separate context keeps its messages apart from others.
        # With the thread level of MPI: GHEX warns about a lower one.
        context = ghex_module("context").make_context(
            grid.comm, MPI.Query_thread() == MPI.THREAD_MULTIPLE
        )
        self._domain = regular.DomainDescriptor(grid.rank, own)
        self._pattern = regular.make_pattern(
            context, regular.HaloGenerator(whole, halos, periodic), [self._domain]
        )
        self._make_field = regular.make_field_descriptor
        self._objects = regular.make_communication_object
        self._context = context
        self._communications: dict[Any, Any] = {}
        self._offsets = tuple(lower for lower, _ in spec.halo)

    def described(self, array: npt.NDArray[Any]) -> Any:
        """The array as GHEX sees it. It borrows the memory and keeps the array."""
        return self._pattern(
            self._make_field(self._domain, _as_ghex_takes_it(array), self._offsets, array.shape)
        )

    def exchange(self, kind: Any, described: list[Any]) -> Any:
        """Packs and sends; returns GHEX's handle."""
        # One object per kind, because each runs one exchange at a time.
        if kind not in self._communications:
            self._communications[kind] = self._objects(self._context)
        return self._communications[kind].exchange(described)


class GhexEngine:
    """See the module; `start` and its result are those of every engine."""

    name = "ghex"

    def __init__(
        self,
        grid: Decomposition,
        specs: Sequence[Spec],
        widths: Sequence[Widths],
        alone: Sequence[bool],
    ) -> None:
        """Makes GHEX's patterns, one for all fields with the same dims, halo and extents. Collective.

        `widths` are the points of each field's halo that are exchanged, next to the domain.

        `alone` says which fields are sent alone: those that have one point along a dimension, on any rank, for these can
        differ in what `_strides_for_ghex` makes of them, and all ranks must group their fields in the same way.
        """
        MPI = mpi_module()  # noqa: N806 (its name)
        self._grid, self._specs = grid, specs
        made: dict[tuple[Any, ...], _Group] = {}
        # Fields that are sent together: of one pattern, dtype and layout. The same on every rank, in the same order.
        self._kinds: dict[tuple[Any, ...], tuple[_Group, list[int]]] = {}
        for number, (spec, wide) in enumerate(zip(specs, widths, strict=True)):
            key = (spec.dims, spec.shape, spec.halo, wide)
            group = made.get(key) or made.setdefault(key, _Group(grid, spec, wide))
            kind = (id(group), spec.dtype, spec.layout, number if alone[number] else None)
            self._kinds.setdefault(kind, (group, []))[1].append(number)
        self._known: dict[tuple[int, int], tuple[weakref.ref[Any], Any]] = {}
        self._failure = np.zeros(1, np.int64)
        self._reduce: Callable[[], Any] = lambda: grid.comm.Iallreduce(
            MPI.IN_PLACE, self._failure, MPI.MAX
        )

    def start(self, fields: Callable[[], Sequence[Any]]) -> Callable[[Sequence[Any]], None]:
        """Packs and sends; the returned function waits. If `fields` raises, all ranks raise."""
        error = None
        try:
            described = self._described(fields())
        except BaseException as caught:
            error, described = caught, self._scratch()
        self._failure[0] = 0 if error is None else self._grid.rank + 1
        reduced = self._reduce()
        handles = [
            group.exchange(kind[1:], list(descriptions))
            for (kind, (group, _)), descriptions in zip(self._kinds.items(), described, strict=True)
        ]

        def finish(_: Sequence[Any]) -> None:
            for handle in handles:
                handle.wait()
            described.clear()
            reduced.Wait()
            failed = int(self._failure[0]) - 1
            if failed >= 0 and error is None:
                raise HaloExchangeError(
                    f"rank {failed} failed before it sent; the halos that it fills are undefined"
                )

        if error is not None:
            finish(())
            raise error
        return finish

    def close(self) -> None:
        """Releases GHEX's objects."""
        self._kinds.clear()
        self._known.clear()

    def _described(self, fields: Sequence[Any]) -> list[list[Any]]:
        """GHEX's descriptions of the fields, by kind. Those of a field are made once, and dropped with it."""
        for spec, field in zip(self._specs, fields, strict=True):
            if field.layout != spec.layout or not _fields.is_on_host(field):
                raise ValueError(
                    f"field {spec.number}: layout must be {spec.layout} in memory of the host, as when the exchange was made, "
                    f"but is {field.layout} in a {type(field).__name__}; make another HaloExchange, or one with "
                    "engine='mpi4py'"
                )
        return [
            [self._description(group, fields[n]) for n in numbers]
            for group, numbers in self._kinds.values()
        ]

    def _description(self, group: _Group, field: Any) -> Any:
        # Each time: it waits for what a device does to managed memory.
        array = field._own_memory()
        key = (id(field), id(group))
        known = self._known.get(key)
        if known is None:
            forget = weakref.ref(field, lambda _: self._known.pop(key, None))
            known = self._known[key] = forget, group.described(array)
        return known[1]

    def _scratch(self) -> list[list[Any]]:
        """Memory in place of the fields, on a rank that failed."""
        return [
            [
                group.described(
                    _core.allocate(spec.shape, spec.dtype, layout=spec.layout).to_numpy()
                )
                for spec in (self._specs[n] for n in numbers)
            ]
            for group, numbers in self._kinds.values()
        ]


def _strides_for_ghex(array: npt.NDArray[Any]) -> tuple[int, ...] | None:
    """Strides that are all different, the smallest that of contiguous items; None if there are none.

    GHEX reads the order of dimensions from the strides and copies along the last of them as if it were contiguous. Of a
    dimension with one point the stride means nothing, so that it may equal another's; here it becomes what GHEX needs: the
    stride of an item where no other dimension has that, else one larger than all.
    """
    strides = list(array.strides)
    axes = [axis for axis, extent in enumerate(array.shape) if extent == 1]
    others = [stride for stride, extent in zip(strides, array.shape, strict=True) if extent != 1]
    if array.itemsize not in others:
        if not axes:
            return None
        strides[axes.pop()] = array.itemsize
    past = max((s * n for s, n in zip(strides, array.shape, strict=True)), default=0)
    past = max([past, *others])
    for axis in axes:
        past += array.itemsize
        strides[axis] = past
    return tuple(strides)


def _as_ghex_takes_it(array: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """A view with the strides of `_strides_for_ghex`, which exist."""
    return np.lib.stride_tricks.as_strided(array, array.shape, _strides_for_ghex(array))


def _layout_of(array: npt.NDArray[Any]) -> _Layout:
    """The layout map that distinct strides have."""
    descending = sorted(array.strides, reverse=True)
    return tuple(descending.index(stride) for stride in array.strides)
