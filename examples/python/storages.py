"""From `gridbuf.storage.zeros` to a stencil on device data. Without a GPU: on the emulated device."""

# [zeros]
import numpy as np

import gridbuf.storage
import gridbuf.testing

# 16 x 16 columns of 8 levels, and a halo of 2 points around the columns.
temperature = gridbuf.storage.zeros((20, 20, 8), backend="gt:cpu_ifirst", halo=(2, 2, 0))
print(temperature)  # shape, dims, halo, layout, padding, device, then the elements

assert temperature.dims == ("I", "J", "K")
assert temperature.domain_view.shape == (16, 16, 8)
assert temperature.aligned_index == (2, 2, 0)  # the first inner point starts a cache line
# [/zeros]

# [names]
surface = gridbuf.storage.ones((20, 20), dims="IJ")
profile = gridbuf.storage.storage(np.linspace(0.0, 1.0, 8), dims="K")

background = surface + profile  # (I, J) and (K): a field over I, J, K
assert background.dims == ("I", "J", "K") and background.shape == (20, 20, 8)
temperature[...] = background
temperature.domain_view[...] += 1.0  # inside the halo only
# [/names]

# [device]
gridbuf.testing.emulated_device()  # leave this line out where there is a GPU

phi = gridbuf.storage.zeros((20, 20, 8), backend="gt:gpu", halo=(1, 1, 0))
out = gridbuf.storage.zeros_like(phi)
assert phi.device == "gpu"
phi[...] = background  # written on the host,
phi[10, 10] += 1.0  # with one warm column
print(phi.sync_state)  # the host is newer
# [/device]


# [stencil]
def diffuse(phi, out, rate):
    """One step of diffusion: reads `phi`, writes `out` inside its halo."""
    inner = phi[1:-1, 1:-1]
    laplacian = (phi[2:, 1:-1] + phi[:-2, 1:-1]) + (phi[1:-1, 2:] + phi[1:-1, :-2]) - 4.0 * inner
    out[1:-1, 1:-1] = inner + rate * laplacian


phi.host_to_device()  # the device is current now, so arithmetic runs there
diffuse(phi, out, 0.1)
print(out.sync_state)  # the device is newer
# [/stencil]

# [back]
column = out[10, 10].to_numpy()  # waits for the device and copies only this column
assert np.allclose(column, profile.to_numpy() + 1.6)
del column  # while this array exists, gridbuf assumes that it is written

edge = out[-2:-1].to_numpy().copy()
out[:1] = edge  # one side of the halo, set on the host
moved_before = gridbuf.testing.statistics()["host_to_device_bytes"]
diffuse(out, phi, 0.1)  # copies two planes to the device, not the field
moved = gridbuf.testing.statistics()["host_to_device_bytes"] - moved_before
assert 0 < moved <= 2 * out[:1].nbytes
# [/back]
