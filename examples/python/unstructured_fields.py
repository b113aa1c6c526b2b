"""Fields of an icosahedral model: cells, edges, levels, neighbours and tracers."""

# [kinds]
import numpy as np

import gridbuf
import gridbuf.storage

# Once, before the first field. Cell and Edge are horizontal and K is vertical without a declaration.
gridbuf.declare_dims(KHalf="vertical", E2C="local", tracer="data")
# [/kinds]

# [fields]
# 128 cells, the last 8 of them owned by other processes, and 6 levels.
cells = {"backend": "gt:cpu_ifirst", "halo": {"Cell": (0, 8)}}
temperature = gridbuf.storage.zeros((128, 6), dims=("Cell", "K"), **cells)
w = gridbuf.storage.zeros((128, 7), dims=("Cell", "KHalf"), **cells)
tracers = gridbuf.storage.zeros((128, 6, 3), dims=("Cell", "K", "tracer"), **cells)

assert temperature.halo == ((0, 8), (0, 0))
assert temperature.domain_view.shape == (120, 6)  # the cells that this process computes
# [/fields]


# [orders]
def order(backend: str, *dims: str) -> str:
    """The dimensions from the largest stride to the smallest, which is contiguous."""
    layout = gridbuf.plan((2,) * len(dims), dims=dims, backend=backend, device=None).layout
    return " ".join(sorted(dims, key=lambda name: layout[dims.index(name)]))


assert order("gt:cpu_kfirst", "Cell", "K") == "Cell K"
assert order("gt:cpu_kfirst", "Cell", "K", "tracer") == "tracer Cell K"
assert order("gt:cpu_kfirst", "Edge", "E2C", "K") == "Edge E2C K"
for backend in ("gt:cpu_ifirst", "gtmc", "gt:gpu", "dace:cpu", "dace:gpu"):
    assert order(backend, "Cell", "K") == "K Cell"
    assert order(backend, "Cell", "K", "tracer") == "tracer K Cell"
    assert order(backend, "Edge", "E2C", "K") == "K Edge E2C"
# [/orders]

# [layout]
columns = gridbuf.storage.zeros((128, 6), dims=("Cell", "K"), layout=("Cell", "K"))
assert columns.strides == (48, 8)  # A column is contiguous.
# [/layout]

# [tables]
# The two cells of each edge.
first = np.arange(192) % 128
table = np.stack([first, (first + 1) % 128], axis=1).astype(np.int32)
e2c = gridbuf.storage.storage(table, dims=("Edge", "E2C"), backend="gt:cpu_ifirst")
assert e2c.layout == (0, 1)  # The neighbours of an edge are next to each other.

temperature[...] = np.add.outer(np.arange(128.0), np.arange(6.0))
at_edges = gridbuf.storage.as_storage(temperature[e2c], dims=("Edge", "E2C", "K"))
mean = at_edges.mean(axis="E2C")
assert mean.dims == ("Edge", "K") and mean.shape == (192, 6) and mean[0, 0] == 0.5
# [/tables]

# [names]
profile = temperature.domain_view.max(axis="Cell")
assert profile.dims == ("K",) and profile.shape == (6,)

surface = temperature[{"K": -1}]  # a view, over Cell
assert surface.dims == ("Cell",) and surface.halo == ((0, 8),)
w[{"KHalf": 0, "Cell": slice(0, 120)}] = 1.0
assert w[119, 0] == 1.0 and w[120, 0] == 0.0

assert temperature.transpose("K", "Cell").shape == (6, 128)
# [/names]

# [join]
anomaly = temperature - temperature[{"Cell": 0}]  # (Cell, K) and (K): over Cell, K
assert anomaly.dims == ("Cell", "K")

pairs = temperature + mean  # (Cell, K) and (Edge, K)
assert pairs.dims == ("Cell", "Edge", "K") and pairs.shape == (128, 192, 6)
# [/join]

# [error]
try:
    temperature + gridbuf.storage.ones(128, dims=[gridbuf.Dim("Cell", "local")])
except ValueError as error:
    assert 'the kind of dimension "Cell" is' in str(error)
else:
    raise AssertionError("Cell is horizontal and local")
# [/error]

# [stencil]
CellK = gridbuf.Axes["Cell", "K"]
EdgeE2C, EdgeK = gridbuf.Axes["Edge", "E2C"], gridbuf.Axes["Edge", "K"]


@gridbuf.stencil(writes="out")
def difference(
    t: gridbuf.Field[np.float64, CellK],
    e2c: gridbuf.Field[np.int32, EdgeE2C],
    out: gridbuf.Field[np.float64, EdgeK],
):
    """The difference of the two cells of each edge, on each level."""
    out[...] = t[e2c[:, 1]] - t[e2c[:, 0]]


gradient = gridbuf.storage.zeros((6, 192), dims=("K", "Edge"))  # in any order
difference(temperature, e2c, gradient)
assert gradient[{"K": 3, "Edge": 0}] == 1.0
# [/stencil]

# [next]
from gt4py import next as gtx  # noqa: E402

import gridbuf.gt4py.next as gb_next  # noqa: E402

Cell, Edge = gtx.Dimension("Cell"), gtx.Dimension("Edge")
K = gtx.Dimension("K", kind=gtx.DimensionKind.VERTICAL)
E2CDim = gtx.Dimension("E2C", kind=gtx.DimensionKind.LOCAL)

phi = gridbuf.gt4py.as_field(temperature)  # GT4Py's field over the memory of the storage
assert phi.domain == gtx.domain({Cell: 128, K: 6})
assert gridbuf.gt4py.as_field(e2c).domain == gtx.domain({Edge: 192, E2CDim: 2})

psi = gb_next.as_field([Edge, K], mean.to_numpy())
storage = gridbuf.storage.as_storage(psi)  # the storage over the memory of GT4Py's field
storage[0, 0] = 7.0
assert storage.dims == ("Edge", "K") and psi.ndarray[0, 0] == 7.0

both = gridbuf.gt4py.as_field(temperature + storage)
assert both.domain == (phi + psi).domain and np.array_equal(both.ndarray, (phi + psi).ndarray)
# [/next]

# [objects]
pressure = gridbuf.storage.zeros((128, 6), dims=(Cell, K), halo={Cell: (0, 8)})
assert pressure.dims == ("Cell", "K") and gridbuf.Dim(pressure.dims[1]).kind == "vertical"
# [/objects]

# [xarray]
import xarray  # noqa: E402

import gridbuf.xarray  # noqa: E402

labelled = gridbuf.xarray.to_data_array(temperature, {"K": np.arange(6)}, name="temperature")
assert labelled.dims == ("Cell", "K") and labelled.data is temperature

analysis = xarray.DataArray(
    np.zeros((2, 19, 36, 6)),
    dims=("time", "lat", "lon", "level"),
    coords={"lat": np.linspace(-90.0, 90.0, 19)},
)
memory = gridbuf.storage.as_storage(analysis)
assert memory.dims == ("time", "lat", "lon", "level")
assert gridbuf.xarray.to_data_array(memory, like=analysis).identical(analysis)
# [/xarray]
