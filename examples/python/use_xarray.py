"""xarray's labels around the memory of gridbuf."""

# [labels]
import numpy as np
import xarray

import gridbuf.storage
import gridbuf.xarray

# 16 x 16 columns of 8 levels with a halo of 2, in the order and alignment of a stencil's backend.
temperature = gridbuf.storage.zeros((20, 20, 8), backend="gt:cpu_ifirst", halo=(2, 2, 0))

field = gridbuf.xarray.to_data_array(
    temperature,
    {"lon": ("I", np.linspace(5.0, 10.7, 20)), "height": ("K", np.arange(8) * 500.0)},
    name="temperature",
    attrs={"units": "K"},
)
assert field.data is temperature  # No copy: a storage with labels around it.
assert field.dims == ("I", "J", "K")
# [/labels]

# [compute]
field[...] = 288.0 - 0.0065 * field.height  # xarray pairs dimensions by name, as storages do,
assert temperature[0, 0, 7] == 288.0 - 0.0065 * 3500.0  # and writes the storage's memory.

warm = field.isel(I=slice(4, 8)) + 1.0
assert isinstance(warm.data, gridbuf.storage.CPUStorage)
assert warm.lon.values.tolist() == field.lon.values[4:8].tolist()

inner = gridbuf.xarray.domain_view(field)  # data and coordinates without the halo
assert inner.shape == (16, 16, 8) and inner.sizes["I"] == inner.lon.size
# [/compute]

# [analyse]
profile = field.mean(("I", "J"))
assert isinstance(profile.data, gridbuf.storage.CPUStorage)
assert np.isclose(profile.sel(K=0), 288.0)
warmest = field.where(field > 280.0).max("K")
assert warmest.dims == ("I", "J")

host = field.as_numpy()  # the same memory as an ndarray
assert np.shares_memory(host.data, temperature.to_numpy())
# [/analyse]

# [file]
# As read from a file: the file's names and order.
pressure = xarray.DataArray(
    np.full((3, 20, 20), 1e5),
    dims=("time", "lat", "lon"),
    coords={"lat": np.linspace(45.0, 50.7, 20), "lon": field.lon.values},
    name="ps",
    attrs={"units": "Pa"},
)

copied = gridbuf.xarray.storage(pressure, halo={"lat": (2, 2), "lon": (2, 2)})
assert copied.identical(pressure)  # Names, coordinates and attributes stay.

# For a stencil over I and J.
surface = gridbuf.xarray.storage(
    pressure.isel(time=0).transpose("lon", "lat"), dims="IJ", backend="gt:cpu_ifirst", halo=(2, 2)
)
assert surface.dims == ("I", "J")  # The dimensions have the stencil's names.
assert surface.lat.dims == ("J",) and surface.attrs == pressure.attrs  # The labels stay.

tendency = gridbuf.xarray.zeros_like(surface)  # a new storage with the same labels, halo, layout
assert tendency.data.halo == surface.data.halo and tendency.lat.equals(surface.lat)
# [/file]

# [functions]
gridbuf.copyto(tendency, surface)  # gridbuf's functions take a DataArray as an array
assert gridbuf.as_buffer(tendency).dims == ("I", "J")  # with dimension names.

column = gridbuf.storage.ones(8, dims="K")
thick = gridbuf.xarray.to_data_array(temperature * column, like=field)  # labels for a result
assert thick.name == "temperature" and thick.height.equals(field.height)
# [/functions]


# [stencil]
@gridbuf.stencil(writes="out")
def lapse_rate(
    t: gridbuf.Field[np.float64], out: gridbuf.Field[np.float64], dz: float, *, origin, domain
):
    """The difference over each level except the last, per metre."""
    (i, j, k), (ni, nj, nk) = origin["t"], domain
    i_out, j_out, k_out = origin["out"]
    column = t[i : i + ni, j : j + nj, k : k + nk + 1]
    out[i_out : i_out + ni, j_out : j_out + nj, k_out : k_out + nk] = np.diff(column, axis=2) / dz


levels_first = field.as_numpy().transpose("K", "J", "I").copy()  # another order, and no halo
rate = gridbuf.xarray.zeros_like(field)  # labels, layout and halo of the field
lapse_rate(levels_first, rate, 500.0, origin={"t": (2, 2, 0)}, domain=(16, 16, 7))
assert np.allclose(gridbuf.xarray.domain_view(rate).isel(K=slice(0, 7)).values, -0.0065)
# [/stencil]
