"""Fields of gridbuf in stencils of GT4Py, without adapters and without copies."""

# [stencil]
import numpy as np
from gt4py.cartesian import gtscript
from gt4py.cartesian.gtscript import PARALLEL, Field, computation, interval

import gridbuf
import gridbuf.storage

BACKEND = "numpy"  # or "gt:cpu_kfirst", "gt:cpu_ifirst", …: the same name for the stencil and for its fields


@gtscript.stencil(backend=BACKEND)
def laplacian(phi: Field[np.float64], out: Field[np.float64]):
    with computation(PARALLEL), interval(...):
        out = phi[1, 0, 0] + phi[-1, 0, 0] + phi[0, 1, 0] + phi[0, -1, 0] - 4.0 * phi  # noqa: F841


# [/stencil]

# [storages]
phi = gridbuf.storage.zeros((66, 66, 80), backend=BACKEND, halo=(1, 1, 0))
out = gridbuf.storage.zeros_like(phi)
phi[...] = np.fromfunction(lambda i, j, k: i * i + j * j + k, phi.shape)

laplacian(phi, out)  # GT4Py reads the origin, the first point inside the halo, from the storage
assert (out.domain_view.to_numpy() == 4.0).all()
assert (out.to_numpy()[0] == 0.0).all()  # the halo is unchanged
# [/storages]

# [permuted]
# The order of a file, K first. Along I the halo has one point below and two above.
levels = gridbuf.storage.zeros(
    (80, 66, 67), dims="KJI", backend=BACKEND, halo=((0, 0), (1, 1), (1, 2))
)
laplacian(phi, levels)
assert (levels.domain_view.to_numpy() == 4.0).all()
# [/permuted]

# [plain]
source = gridbuf.from_array(phi.to_numpy(), backend=BACKEND, aligned_index=(1, 1, 0))
target = gridbuf.zeros(source.shape, backend=BACKEND, aligned_index=(1, 1, 0))
laplacian(source, target, origin=(1, 1, 0), domain=(64, 64, 80))  # an ndarray has no halo
assert (target[1:-1, 1:-1] == 4.0).all()
# [/plain]

# [called]
checked = gridbuf.stencil(laplacian)
checked(phi, levels)  # as laplacian(phi, levels), with checks at every call
try:
    checked(phi, target.astype("float32"))
except TypeError as error:
    print(error)  # names the field, its type and the expected type
# [/called]

# [switch]
from gridbuf.gt4py import cartesian as gt_storage  # noqa: E402  (was: from gt4py import storage as gt_storage)

field = gt_storage.full(
    (66, 66, 80), 1.5, np.float32, backend="gt:cpu_ifirst", aligned_index=(1, 1, 0)
)
copied = gt_storage.from_array(np.ones((66, 66)), backend=BACKEND, dimensions="IJ")
# [/switch]
assert field.dtype == np.float32 and field[1, 1, 0:1].ctypes.data % 64 == 0
assert copied.strides == (528, 8)
