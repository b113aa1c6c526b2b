"""xarray's `DataArray` over NumPy arrays."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import xarray

from ...plan import Plan
from ...producer import Unsupported
from ...producers.base import HostProducer
from .numpy import NumPyProducer

_NUMPY = NumPyProducer()


class XarrayProducer(HostProducer):
    """`DataArray(array, dims=…)`: named dimensions; `__array__` alone leads to the memory."""

    name = "xarray"
    capabilities = _NUMPY.capabilities

    def make(self, plan: Plan) -> xarray.DataArray:
        return xarray.DataArray(_NUMPY.make(plan))

    def apply_view(self, obj: xarray.DataArray, operation: Sequence[Any]) -> Any:
        if operation[0] in ("newaxis", "broadcast"):
            return Unsupported(f"xarray: {operation[0]} makes another kind of dimension")
        return xarray.DataArray(_NUMPY.apply_view(obj.data, operation))
