"""A stencil of GT4Py on the array types of fields.py."""
# ruff: noqa: F841  (to GT4Py an assignment is an output)

# [gt4py]
import numpy as np
from fields import ModelField
from gt4py.cartesian import gtscript
from gt4py.cartesian.gtscript import PARALLEL, Field, computation, interval


@gtscript.stencil(backend="gt:cpu_ifirst")  # has our order in memory: I contiguous
def diffuse(phi: Field[float], out: Field[float], rate: float):
    with computation(PARALLEL), interval(...):
        around = phi[-1, 0, 0] + phi[1, 0, 0] + phi[0, -1, 0] + phi[0, 1, 0]
        out = phi + rate * (around - 4.0 * phi)


# Five levels of 8 x 6 columns, and a halo around the columns: along I two points below, one above.
halo = ((0, 0), (1, 1), (2, 1))
phi = ModelField((5, 8, 11), halo=halo)
out = ModelField((5, 8, 11), halo=halo)
phi.values[...] = np.random.default_rng(1).random(phi.values.shape)

diffuse(phi, out, 0.1)  # order from __gt_dims__, origin from __gt_origin__, no copy

k, j, i = 2, 1, 2  # the first point of the domain
around = phi.values[k, j, i - 1] + phi.values[k, j, i + 1]
around += phi.values[k, j - 1, i] + phi.values[k, j + 1, i]
center = phi.values[k, j, i]
assert np.isclose(out.values[k, j, i], center + 0.1 * (around - 4 * center))
assert not out.values[:, 0].any() and not out.values[:, :, :2].any()  # the halo is unchanged
# [/gt4py]
