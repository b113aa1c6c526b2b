"""Storages in netCDF files, with the labels of xarray."""

# [save]
import numpy as np
import xarray

import gridbuf.storage
import gridbuf.xarray

temperature = gridbuf.storage.full((20, 20, 8), 288.0, backend="gt:cpu_ifirst", halo=(2, 2, 0))
field = gridbuf.xarray.to_data_array(
    temperature,
    {"lon": ("I", np.linspace(5.0, 10.7, 20)), "height": ("K", np.arange(8) * 500.0)},
    name="temperature",
    attrs={"units": "K"},
)

halo = np.ravel(field.data.halo)  # netCDF attributes are numbers, texts and flat arrays
field.assign_attrs(halo=halo).as_numpy().to_netcdf("restart.nc")
# [/save]

# [load]
with xarray.open_dataset("restart.nc") as file:
    halo = file.temperature.halo.reshape(-1, 2).tolist()
    restored = gridbuf.xarray.storage(file.temperature, backend="gt:cpu_ifirst", halo=halo)

assert restored.equals(field) and restored.units == "K"  # values, names, coordinates, attributes
assert restored.data.halo == temperature.halo and restored.data.strides == temperature.strides
# [/load]

# [domain]
gridbuf.xarray.domain_view(field).as_numpy().to_netcdf("output.nc")
with xarray.open_dataset("output.nc") as file:
    assert file.temperature.shape == (16, 16, 8) and file.lon.size == 16
    gridbuf.xarray.domain_view(restored)[...] = file.temperature
# [/domain]

# [dataset]
fields = xarray.Dataset({"temperature": field, "pressure": gridbuf.xarray.zeros_like(field)})
fields.as_numpy().to_netcdf("fields.nc")
# [/dataset]
with xarray.open_dataset("fields.nc") as file:
    assert file.equals(fields.as_numpy())
