"""A Fortran array on the host and padded rows for a GPU on the device: two layouts of one storage."""

# [field]
import numpy as np

import gridbuf
import gridbuf.storage
import gridbuf.testing

gridbuf.testing.emulated_device()  # leave this line out where there is a GPU

# The model's field, as Fortran allocates it: I contiguous, no padding, a halo of 1 around the columns.
temperature = np.asfortranarray(np.random.default_rng(1).random((66, 50, 40)))

field = gridbuf.storage.as_storage(
    temperature,
    halo=(1, 1, 0),
    device_layout=("I", "J", "K"),  # K contiguous, as a stencil along columns wants it,
    device_alignment_size=128,  # and rows of whole 128 bytes
)
assert field.to_numpy().ctypes.data == temperature.ctypes.data  # neither copied nor moved
assert (field.layout, field.device_layout) == ((2, 1, 0), (0, 1, 2))
assert (field.strides, field.device_strides) == ((8, 528, 26400), (19200, 384, 8))
# [/field]

# [preset]
tracer = gridbuf.storage.zeros(
    (66, 50, 40), layout=(2, 1, 0), device_defaults="gt:gpu", halo=(1, 1, 0)
)
# `gt:gpu` has Fortran's order, with padded rows of whole 128 bytes. The host's buffer has no padding.
assert tracer.device == "gpu" and tracer.alignment_size == 1
assert (tracer.strides, tracer.device_strides) == ((8, 528, 26400), (8, 640, 32000))
# [/preset]


# [stencil]
@gridbuf.stencil(backend="dace:gpu_IJK", writes="field")  # on the device, K contiguous
def cool(field: gridbuf.Field[np.float64], rate: float, *, origin, domain):
    inner = tuple(slice(o, o + n) for o, n in zip(origin["field"], domain, strict=True))
    field[inner] *= 1.0 - rate


expected = temperature[1:-1, 1:-1] * 0.9
cool(field, 0.1)  # the elements go to the device first, which puts them in its order
field.device_to_host()  # Fortran sees the result in its own array
assert np.allclose(temperature[1:-1, 1:-1], expected)
# [/stencil]

# [halo]
temperature[0] = temperature[-2]  # Fortran exchanges a halo, in its own memory,
field[:1].set_host_modified()  # and says so
before = gridbuf.testing.statistics()["host_to_device_bytes"]
cool(field, 0.1)
moved = gridbuf.testing.statistics()["host_to_device_bytes"] - before
assert 0 < moved <= 1.2 * field[:1].nbytes
# [/halo]

# [exports]
entries = field.__gt_data_interface__  # GT4Py's interface: each side has its strides
assert entries[None]["strides"] == field.strides
assert entries["gpu"]["strides"] == field.device_strides
assert entries[None]["dims"] == entries["gpu"]["dims"] == ("I", "J", "K")
# [/exports]
