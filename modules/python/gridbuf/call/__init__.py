"""Calling stencils: any callable over arrays, made to take fields.

`stencil` wraps a function whose parameters are annotated with `Field[...]`. Calls of it take storages, Buffers, plain
arrays, DataArrays, anything with an interface, in any order of dimensions; the function gets arrays in the order of its
annotations, and where to compute in them.

>>> import numpy as np
>>> import gridbuf, gridbuf.storage
>>> from gridbuf import Field, IJK
>>> @gridbuf.stencil(writes="out")
... def diffuse(field: Field[np.float64, IJK], out: Field[np.float64, IJK], weight: float, *, origin, domain):
...     (i, j, k), (ni, nj, nk) = origin["field"], domain
...     near = field[i - 1 : i + ni - 1, j : j + nj, k : k + nk] + field[i + 1 : i + ni + 1, j : j + nj, k : k + nk]
...     i, j, k = origin["out"]
...     out[i : i + ni, j : j + nj, k : k + nk] = weight * near
>>> field = gridbuf.storage.ones((6, 4, 2), halo=(1, 0, 0))
>>> out = gridbuf.storage.zeros((2, 4, 6), dims="KJI", halo=(0, 0, 1))
>>> diffuse(field, out, 0.5)
>>> float(out[0, 0, 1]), float(out[0, 0, 0])
(1.0, 0.0)

The protocol of a call: acquire all fields, read their interfaces again, resolve dims, origin and domain, check, run, `touch`
the written fields, `release` all, also when something raises. See `docs/explanation/calls.md`.
"""

from __future__ import annotations

from ._annotations import (
    IJ,
    IJK,
    IK,
    JK,
    Alignment,
    Axes,
    DefaultParameters,
    DType,
    Field,
    FieldType,
    I,
    J,
    K,
    LayoutMap,
)
from ._halos import StaleHaloError, StaleHaloWarning, set_halo_check
from ._stencil import ExpensiveCopyWarning, SlowFieldWarning, Stencil, stencil

__all__ = [
    "IJ",
    "IJK",
    "IK",
    "JK",
    "Alignment",
    "Axes",
    "DType",
    "DefaultParameters",
    "ExpensiveCopyWarning",
    "Field",
    "FieldType",
    "I",
    "J",
    "K",
    "LayoutMap",
    "SlowFieldWarning",
    "StaleHaloError",
    "StaleHaloWarning",
    "Stencil",
    "set_halo_check",
    "stencil",
]


def __dir__() -> list[str]:
    return __all__
