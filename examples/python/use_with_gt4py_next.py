"""Fields of gt4py.next on gridbuf's memory, an unstructured and a structured program (docs/how-to/use-with-gt4py-next.md)."""

# [allocator]
import numpy as np
from gt4py import next as gtx
from gt4py.next import neighbor_sum

import gridbuf
import gridbuf.gt4py.next as gb_next

Edge, Vertex = gtx.Dimension("Edge"), gtx.Dimension("Vertex")
E2VDim = gtx.Dimension("E2V", kind=gtx.DimensionKind.LOCAL)
E2V = gtx.FieldOffset("E2V", source=Vertex, target=(Edge, E2VDim))
K = gtx.Dimension("K", kind=gtx.DimensionKind.VERTICAL)

phi = gtx.zeros({Vertex: 9, K: 80}, allocator=gb_next.allocator)
assert gridbuf.owns(phi)
# [/allocator]

# [constructors]
values = np.random.default_rng(1).random((9, 80))
table = np.stack([np.arange(12) % 9, np.arange(1, 13) % 9], axis=1).astype(np.int32)

phi = gb_next.as_field([Vertex, K], values)
out = gb_next.zeros({Edge: 12, K: 80})
edges = gb_next.as_connectivity([Edge, E2VDim], Vertex, table)
# [/constructors]


# [program]
@gtx.field_operator
def edge_sum(phi: gtx.Field[[Vertex, K], gtx.float64]) -> gtx.Field[[Edge, K], gtx.float64]:
    return neighbor_sum(phi(E2V), axis=E2VDim)


edge_sum.with_backend(None)(phi, out=out, offset_provider={"E2V": edges})
assert np.allclose(out.ndarray, values[table].sum(axis=1))
# [/program]

# [backend]
backend = gb_next.with_allocator(gtx.gtfn_cpu)
assert gridbuf.owns(gtx.ones({Vertex: 9, K: 80}, allocator=backend))
# [/backend]

# [use]
with gb_next.use():
    assert gridbuf.owns(gtx.ones({Vertex: 9, K: 80}))
# [/use]


# [layout]
columns = gb_next.FieldAllocator(layout_mapper=gb_next.vertical_contiguous_layout_mapper)
assert gtx.zeros({K: 80, Vertex: 9}, allocator=columns).ndarray.strides == (8, 640)
# [/layout]

# [aligned]
from gt4py.next import common  # noqa: E402

I, J = gtx.Dimension("I"), gtx.Dimension("J")  # noqa: E741
first = [common.NamedIndex(I, 0)]  # the point 0, behind a halo of 3
field = gtx.empty({I: (-3, 61), J: (-3, 61)}, allocator=gb_next.allocator, aligned_index=first)
assert field.ndarray[3:].ctypes.data % 64 == 0
# [/aligned]

# [views]
import gridbuf.storage  # noqa: E402

storage = gridbuf.storage.zeros((66, 66, 80), backend="gt:cpu_ifirst", halo=(1, 1, 0))
over = gridbuf.gt4py.as_field(storage)  # the same memory, names and kinds
assert over.domain == gtx.domain({I: (-1, 65), J: (-1, 65), K: 80})

back = gridbuf.storage.as_storage(over)
assert back.dims == ("I", "J", "K") and back.halo == ((1, 0), (1, 0), (0, 0))
gridbuf.copyto(over, 1.0)
assert storage.to_numpy().min() == 1.0
# [/views]


# [stencil]
@gtx.field_operator
def rise(phi: gtx.Field[[I, J, K], gtx.float64]) -> gtx.Field[[I, J, K], gtx.float64]:
    return phi(I + 1) - phi


@gridbuf.stencil(writes="out")
def step(phi: gridbuf.Field[np.float64], out: gridbuf.Field[np.float64], *, origin):
    def field(array, name):
        return gridbuf.gt4py.as_field(array, [I, J, K], origin=dict(zip((I, J, K), origin[name])))

    rise.with_backend(None)(field(phi, "phi"), out=field(out, "out"), offset_provider={})


steps = gridbuf.storage.zeros((64, 66, 80), backend="gt:cpu_ifirst", halo=((0, 0), (1, 1), (0, 0)))
storage[...] = np.fromfunction(lambda i, j, k: 2 * i + j, storage.shape)
step(storage, steps)
assert (steps.to_numpy() == 2.0).all()
# [/stencil]
