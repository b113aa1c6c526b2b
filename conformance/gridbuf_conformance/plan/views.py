"""View operations: what each does to a shape, and where a view's elements are in the produced
array.

An operation is a short JSON list:

| operation | meaning | in Python |
|---|---|---|
| `["slice", axis, start, stop, step]` | start, stop may be null | `x[..., start:stop:step]` |
| `["reverse", axis]` | a negative stride | `x[..., ::-1]` |
| `["empty", axis]` | extent 0 | `x[..., 0:0]` |
| `["transpose", [perm]]` | axis i of the view is axis perm[i] | `x.transpose(perm)` |
| `["newaxis", axis]` | a new axis of extent 1 before `axis` | `x[..., None]` |
| `["broadcast", axis, n]` | an axis of extent 1 becomes extent n with stride 0 | `broadcast_to` |

A chain of such operations is affine: `ViewMap` holds it as one start index in the produced array
and, for each axis of the view, the axis of the produced array it runs along (or none) and its step
in that axis's elements.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

_NDIM_LIMIT = 64


@dataclass(frozen=True)
class ViewMap:
    """Where the elements of a view are in the produced array ("base").

    Element `index` of the view is element `start + Σ index[a] · step[a]` (along base axis
    `axis[a]`) of the base. `axes[a]` is None for a new axis; `steps[a]` is then 0, as it is for a
    broadcast axis.
    """

    shape: tuple[int, ...]
    start: tuple[int, ...]
    axes: tuple[int | None, ...]
    steps: tuple[int, ...]

    @classmethod
    def of(cls, base_shape: Sequence[int], operations: Sequence[Sequence[Any]]) -> ViewMap:
        """The map of a chain of operations; raises ValueError naming the operation that does not
        fit.
        """
        ndim = len(base_shape)
        view = cls(tuple(base_shape), (0,) * ndim, tuple(range(ndim)), (1,) * ndim)
        if not isinstance(operations, (list, tuple)):
            raise ValueError(  # noqa: TRY004 (part of a plan's text)
                f"plan key 'views' is {operations!r}, must be a list of operations"
            )
        for operation in operations:
            view = view.after(operation)
        return view

    def after(self, operation: Sequence[Any]) -> ViewMap:
        """The map with one more operation; raises ValueError naming the operation and what it
        needs.
        """
        try:
            name, *arguments = operation
            apply, kinds = OPERATIONS[name]
        except (TypeError, ValueError, KeyError):
            raise ValueError(
                f"view operation {operation!r} is unknown; use one of {', '.join(OPERATIONS)}"
            ) from None
        if len(arguments) != len(kinds) or not all(map(_matches, kinds, arguments)):
            raise ValueError(f"view operation {operation!r} must be [{name!r}, {', '.join(kinds)}]")
        try:
            return apply(self, *arguments)
        except ValueError as error:
            raise ValueError(
                f"view operation {list(operation)!r} on shape {self.shape}: {error}"
            ) from None

    def base_index(self, index: Sequence[int]) -> tuple[int, ...]:
        """The element of the base that the view's element `index` is."""
        base = list(self.start)
        for position, axis, step in zip(index, self.axes, self.steps):
            if axis is not None:
                base[axis] += position * step
        return tuple(base)

    def strides(self, base_strides: Sequence[int]) -> tuple[int, ...]:
        """The view's strides, in the unit of `base_strides`."""
        steps = zip(self.axes, self.steps)
        return tuple(0 if axis is None else step * base_strides[axis] for axis, step in steps)

    def offset(self, base_strides: Sequence[int]) -> int:
        """Distance of the view's first element from the base's first, in the unit of
        `base_strides`.
        """
        return sum(start * stride for start, stride in zip(self.start, base_strides))

    def _existing(self, axis: int) -> None:
        if axis >= len(self.shape):
            raise ValueError(
                f"axis {axis} must be in 0..{len(self.shape) - 1}; name an existing axis"
            )

    def _slice(self, axis: int, start: int | None, stop: int | None, step: int) -> ViewMap:
        self._existing(axis)
        if step == 0:
            raise ValueError("the step is 0, must be positive or negative; give another step")
        first, last, step = slice(start, stop, step).indices(self.shape[axis])
        extent = len(range(first, last, step))
        moved = list(self.start)
        base_axis = self.axes[axis]
        if extent and base_axis is not None:
            moved[base_axis] += first * self.steps[axis]
        return replace(
            self,
            shape=_with(self.shape, axis, extent),
            start=tuple(moved),
            steps=_with(self.steps, axis, self.steps[axis] * step),
        )

    def _reverse(self, axis: int) -> ViewMap:
        return self._slice(axis, None, None, -1)

    def _empty(self, axis: int) -> ViewMap:
        return self._slice(axis, 0, 0, 1)

    def _transpose(self, permutation: Sequence[int]) -> ViewMap:
        if sorted(permutation) != [*range(len(self.shape))]:
            raise ValueError(f"the permutation must hold 0..{len(self.shape) - 1} once each")
        return replace(
            self,
            shape=tuple(self.shape[p] for p in permutation),
            axes=tuple(self.axes[p] for p in permutation),
            steps=tuple(self.steps[p] for p in permutation),
        )

    def _newaxis(self, axis: int) -> ViewMap:
        if axis > len(self.shape) or len(self.shape) >= _NDIM_LIMIT:
            raise ValueError(
                f"axis {axis} must be in 0..{len(self.shape)}, with at most {_NDIM_LIMIT} axes"
            )
        return replace(
            self,
            shape=(*self.shape[:axis], 1, *self.shape[axis:]),
            axes=(*self.axes[:axis], None, *self.axes[axis:]),
            steps=(*self.steps[:axis], 0, *self.steps[axis:]),
        )

    def _broadcast(self, axis: int, extent: int) -> ViewMap:
        self._existing(axis)
        if self.shape[axis] != 1:
            raise ValueError(
                f"axis {axis} has extent {self.shape[axis]}, must be 1; pick another axis"
            )
        return replace(
            self, shape=_with(self.shape, axis, extent), steps=_with(self.steps, axis, 0)
        )


OPERATIONS: dict[str, tuple[Callable[..., ViewMap], tuple[str, ...]]] = {
    "slice": (ViewMap._slice, ("axis", "start or null", "stop or null", "step")),
    "reverse": (ViewMap._reverse, ("axis",)),
    "empty": (ViewMap._empty, ("axis",)),
    "transpose": (ViewMap._transpose, ("[axes]",)),
    "newaxis": (ViewMap._newaxis, ("axis",)),
    "broadcast": (ViewMap._broadcast, ("axis", "extent")),
}
"""Name of each operation → what it does to a map, and the words for its arguments."""


def _matches(kind: str, value: Any) -> bool:
    if kind == "[axes]":
        return isinstance(value, (list, tuple)) and all(type(entry) is int for entry in value)
    if value is None:
        return kind.endswith("or null")
    return type(value) is int and (value >= 0 or kind not in ("axis", "extent"))


def _with(values: tuple[int, ...], axis: int, value: int) -> tuple[int, ...]:
    return (*values[:axis], value, *values[axis + 1 :])
