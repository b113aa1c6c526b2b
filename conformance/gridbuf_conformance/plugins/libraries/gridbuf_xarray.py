"""xarray's `DataArray` over a storage of gridbuf, with the accessor of `gridbuf.xarray`.

It has `__gt_data_interface__` and `__gt_dims__` alone: what xarray adds to an array are names.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import gridbuf.xarray
import xarray

from ...plan import Plan
from ...producer import Unsupported
from .storages import CpuStorageProducer


class XarrayOfStorageProducer(CpuStorageProducer):
    """`DataArray(storage, dims=storage.dims)`."""

    name = "gridbuf.xarray"

    def version(self) -> str:
        return f"{gridbuf.__version__} with xarray {xarray.__version__}"

    def make(self, plan: Plan) -> Any:
        storage = super().make(plan)
        return xarray.DataArray(storage, dims=storage.dims)

    def apply_view(self, obj: xarray.DataArray, operation: Sequence[Any]) -> Any:
        name, *arguments = operation
        if name in ("newaxis", "broadcast"):
            return Unsupported(f"xarray: {name} makes another kind of dimension")
        if name == "transpose":
            return obj.transpose(*(obj.dims[axis] for axis in arguments[0]))
        return super().apply_view(obj, operation)
