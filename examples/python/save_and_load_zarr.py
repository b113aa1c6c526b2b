"""Storages in Zarr arrays and groups."""

# [zarr]
import zarr

import gridbuf.storage

field = gridbuf.storage.full((20, 20, 8), 288.0, backend="gt:cpu_ifirst", halo=(2, 2, 0))

stored = zarr.create_array(
    "restart.zarr",
    data=field.to_numpy(),
    chunks=(10, 20, 8),
    dimension_names=field.dims,
    attributes={"halo": field.halo},
)
stored = zarr.open_array("restart.zarr", mode="r")
restored = gridbuf.storage.storage(
    stored,
    dims=stored.metadata.dimension_names,
    halo=stored.attrs["halo"],
    backend="gt:cpu_ifirst",
)
assert (restored == field).all() and restored.strides == field.strides
# [/zarr]

# [xarray]
import xarray  # noqa: E402

import gridbuf.xarray  # noqa: E402

labelled = gridbuf.xarray.to_data_array(field, name="temperature")
labelled.as_numpy().to_zarr("fields.zarr", mode="w", consolidated=False)
with xarray.open_dataset("fields.zarr", engine="zarr", consolidated=False) as file:
    again = gridbuf.xarray.storage(file.temperature, backend="gt:cpu_ifirst", halo=(2, 2, 0))
assert again.equals(labelled) and again.data.halo == field.halo
# [/xarray]
