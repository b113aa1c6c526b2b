"""A compiled stencil of GT4Py, as `gridbuf.stencil` calls it.

GT4Py's call finds origin and domain, checks the fields, and runs. Here gridbuf does the first two, by its rules and by the
attributes of the stencil object (types, axes, points that it reads, fields that it writes). Then the object runs, frozen to that
origin and domain.

GT4Py is not imported: a caller with a stencil object has imported it.
"""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from typing import Any, Literal

import numpy as np

from .. import _core
from ._annotations import FieldType

# Keywords of GT4Py's own calls.
_OWN = ("domain", "origin", "validate_args", "exec_info")


def declaration(compiled: Any) -> dict[str, Any]:
    """The arguments of `Stencil`, except `on_wrong_device` and `allow_alias`."""
    infos: Mapping[str, Any] = compiled.field_info
    used = {name: info for name, info in infos.items() if _access(info) != 0}
    parameters = [
        parameter.replace(
            annotation=inspect.Parameter.empty,
            default=None if name in infos and name not in used else parameter.default,
        )
        for name, parameter in inspect.signature(compiled.__call__).parameters.items()
        if name not in _OWN
    ]
    return {
        "function": _Run(compiled, used),
        "name": compiled.options["name"],
        "signature": inspect.Signature([*_in_legal_order(parameters), *_ORIGIN_AND_DOMAIN]),
        "fields": {name: _field_type(info) for name, info in used.items()},
        "backend": compiled.backend if compiled.backend in _core.presets() else None,
        "device": _device(compiled),
        "writes": tuple(name for name, info in used.items() if _access(info) & _WRITE),
        "reads": tuple(name for name, info in used.items() if _access(info) & _READ),
        "reach": {name: _reach(info) for name, info in used.items()},
    }


_READ, _WRITE = 1, 2  # Of gt4py.cartesian.definitions.AccessKind.

_ORIGIN_AND_DOMAIN = [
    inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY) for name in ("origin", "domain")
]


def _access(info: Any) -> int:
    return int(info.access.value)


def _in_legal_order(parameters: list[inspect.Parameter]) -> list[inspect.Parameter]:
    """Parameters with defaults must not precede others: those that do become keyword-only."""
    tail = False
    legal = []
    for parameter in parameters:
        has_default = parameter.default is not parameter.empty
        if tail and not has_default:
            parameter = parameter.replace(kind=parameter.KEYWORD_ONLY)
        tail = tail or has_default
        legal.append(parameter)
    return sorted(legal, key=lambda parameter: parameter.kind)


def _field_type(info: Any) -> FieldType:
    data = tuple(int(extent) for extent in info.data_dims)
    return FieldType(
        dtype=np.dtype(info.dtype),
        axes=tuple(map(str, info.axes)) + tuple(map(str, range(len(data)))),
        data_shape=data,
    )


def _reach(info: Any) -> tuple[tuple[int, int], ...]:
    """How many points before and beyond the domain the stencil touches, per dimension."""
    widths = dict(zip("IJK", info.boundary))
    spatial = [tuple(max(int(width), 0) for width in widths[str(axis)]) for axis in info.axes]
    return (*((lower, upper) for lower, upper in spatial), *((0, 0) for _ in info.data_dims))


def _device(compiled: Any) -> Literal["gpu"] | None:
    backend = compiled.backend
    presets = _core.presets()
    if backend in presets:
        return presets[backend]["device"]
    return "gpu" if "gpu" in backend else None


class _Run:
    """The function of the stencil: the compiled stencil, frozen to an origin and a domain."""

    def __init__(self, compiled: Any, used: Mapping[str, Any]) -> None:
        self._compiled = compiled
        self._unused = tuple(name for name in compiled.field_info if name not in used)
        self._names = [
            name for name in inspect.signature(compiled.__call__).parameters if name not in _OWN
        ]
        axes = {str(axis) for info in used.values() for axis in info.axes}
        self._axes = tuple(axis for axis in "IJK" if axis in axes)
        self.__name__ = compiled.options["name"]
        self.__doc__ = type(compiled).__doc__

    def __call__(
        self,
        *args: Any,
        origin: dict[str, tuple[int, ...]],
        domain: tuple[int, ...],
        **kwargs: Any,
    ) -> None:
        compiled = self._compiled
        along = dict(zip(self._axes, domain))
        whole = tuple(along.get(axis, 1) for axis in "IJK")
        self._require_points(whole)
        for name in self._unused:  # They are in no call, but have an origin.
            origin[name] = (0,) * compiled.field_info[name].ndim
            kwargs.setdefault(name, None)
        arguments = {**dict(zip(self._names, args)), **kwargs}
        compiled.freeze(origin=origin, domain=whole)(**arguments)

    def _require_points(self, domain: tuple[int, ...]) -> None:
        """Raises the errors of GT4Py for a domain, which do not depend on fields."""
        least = (1, 1, max(1, self._compiled.domain_info.min_sequential_axis_size))
        for axis, extent, bound in zip("IJK", domain, least):
            if extent < bound:
                raise ValueError(
                    f"domain, dimension {axis}: the number of points is {extent}, but must be at least {bound} for "
                    f"stencil {self.__name__!r} of GT4Py; pass larger fields, or another domain="
                )
