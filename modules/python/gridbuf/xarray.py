"""xarray's DataArray as an array of a grid: importing this module gives it `__gt_data_interface__` and `__gt_dims__`.

The interface is that of `data_array.data`, with the names of the DataArray's dimensions added to each entry. If the data names
its dimensions itself, the two must agree, else reading the interface is a ValueError. Names are passed on as they are: "lat"
and "lon" are fine for whoever knows them; gridbuf's own functions ask for `dims=` then.

>>> import gridbuf, gridbuf.xarray, xarray
>>> field = xarray.DataArray(gridbuf.zeros((2, 3)), dims=("I", "J"))
>>> gridbuf.as_buffer(field).dims
('I', 'J')

Both are properties and no accessors of xarray's own kind, because xarray keeps what an accessor returned: after
`data_array.data = other` that would describe memory that may be gone. They are overridden like any accessor, with
`@xarray.register_dataarray_accessor("__gt_data_interface__")`; xarray then warns that there was one.
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any

import xarray

__all__ = ["data_interface", "dims"]


def dims(data_array: xarray.DataArray) -> tuple[Hashable, ...]:
    """The names of the dimensions, as `__gt_dims__`: one per dimension, whatever they are."""
    return data_array.dims


def data_interface(data_array: xarray.DataArray) -> dict[str | None, dict[str, Any]]:
    """The `__gt_data_interface__` of a DataArray (GT-11).

    That of its data if that has one; else an entry under None made of `__array_interface__` and one under "gpu" made of
    `__cuda_array_interface__`. Each entry names the DataArray's dimensions.

    Raises:
      ValueError: an entry of the data names its dimensions otherwise.
      AttributeError: the data has none of the three interfaces (a Dask array, for example): load it first.
    """
    entries = _entries_of(data_array.data)
    if not entries:
        raise AttributeError(
            f"a DataArray over {type(data_array.data).__name__} has no __gt_data_interface__: its data has neither that "
            "nor an array interface; load or compute it first"
        )
    return {device: _named(entry, device, data_array.dims) for device, entry in entries.items()}


def _entries_of(data: object) -> dict[str | None, dict[str, Any]]:
    interface: dict[str | None, dict[str, Any]] | None = getattr(
        data, "__gt_data_interface__", None
    )
    if interface is not None:
        return interface
    found = {
        None: getattr(data, "__array_interface__", None),
        "gpu": getattr(data, "__cuda_array_interface__", None),
    }
    return {device: entry for device, entry in found.items() if entry is not None}


def _named(
    entry: dict[str, Any], device: str | None, names: tuple[Hashable, ...]
) -> dict[str, Any]:
    own = entry.get("dims")
    if own is not None and tuple(own) != names:
        raise ValueError(
            f"GT-11: dims of the data's entry for {device!r} are {tuple(own)}, but must be {names}, those of the "
            "DataArray; rename one of them, for example with data_array.rename"
        )
    return {**entry, "dims": names}


# Not register_dataarray_accessor: see above.
xarray.DataArray.__gt_data_interface__ = property(data_interface)  # type: ignore[attr-defined]
xarray.DataArray.__gt_dims__ = property(dims)  # type: ignore[attr-defined]
