"""A field on the cells of an icosahedral grid, as in ICON4Py, in memory of gridbuf. docs/gallery.md shows one level."""

# [data]
import numpy as np
from gt4py import next as gtx
from gt4py.next import neighbor_sum
from icosphere import icosphere, neighbours

import gridbuf
import gridbuf.gt4py.next as gb_next

Cell, K = gtx.Dimension("Cell"), gtx.Dimension("K", kind=gtx.DimensionKind.VERTICAL)
C2E2CDim = gtx.Dimension("C2E2C", kind=gtx.DimensionKind.LOCAL)
C2E2C = gtx.FieldOffset("C2E2C", source=Cell, target=(Cell, C2E2CDim))


@gtx.field_operator
def smooth(phi: gtx.Field[[Cell, K], gtx.float64]) -> gtx.Field[[Cell, K], gtx.float64]:
    return 0.25 * phi + 0.25 * neighbor_sum(phi(C2E2C), axis=C2E2CDim)


vertices, cells = icosphere(3)
before = np.random.default_rng(4).random((len(cells), 8))
phi = gb_next.as_field([Cell, K], before)
table = gb_next.as_connectivity([Cell, C2E2CDim], Cell, neighbours(cells))
for _ in range(20):
    smooth.with_backend(None)(phi, out=phi, offset_provider={"C2E2C": table})
assert gridbuf.owns(phi) and gridbuf.owns(table)
# [/data]

assert np.allclose(phi.ndarray.mean(axis=0), before.mean(axis=0))  # smoothing keeps the mean
print(
    f"{len(cells)} cells: differences of {np.ptp(before):.2f} before, {np.ptp(phi.ndarray):.2f} after"
)
