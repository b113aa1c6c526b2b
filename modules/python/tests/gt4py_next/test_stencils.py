"""Programs of `gt4py.next` on gridbuf's memory: structured and unstructured, embedded and compiled."""

from __future__ import annotations

from typing import Any

import gridbuf
import gridbuf.storage
import numpy as np
import pytest

pytest.importorskip(
    "gt4py.next.custom_layout_allocators",
    reason="gt4py is not installed; install the peers with `./bazelw --peers`",
)

import gridbuf.gt4py.next as gb_next
from gridbuf import testing
from gt4py import next as gtx
from gt4py.next import neighbor_sum

I, J = gtx.Dimension("I"), gtx.Dimension("J")  # noqa: E741 (GT4Py's name)
K = gtx.Dimension("K", kind=gtx.DimensionKind.VERTICAL)
Edge, Vertex = gtx.Dimension("Edge"), gtx.Dimension("Vertex")
E2VDim = gtx.Dimension("E2V", kind=gtx.DimensionKind.LOCAL)
E2V = gtx.FieldOffset("E2V", source=Vertex, target=(Edge, E2VDim))


@gtx.field_operator
def difference(phi: gtx.Field[[I, J, K], gtx.float64]) -> gtx.Field[[I, J, K], gtx.float64]:
    return phi(I + 1) - phi(I - 1)


@gtx.field_operator
def edge_sum(phi: gtx.Field[[Vertex, K], gtx.float64]) -> gtx.Field[[Edge, K], gtx.float64]:
    return neighbor_sum(phi(E2V), axis=E2VDim)


def backends() -> list[Any]:
    return [
        pytest.param(None, id="embedded"),
        pytest.param(gb_next.with_allocator(gtx.gtfn_cpu), id="gtfn_cpu"),
    ]


@pytest.mark.parametrize("backend", backends())
@pytest.mark.parametrize("kind", ["constructor", "storage"])
def test_structured(backend: Any, kind: str) -> None:
    """The fields begin at -1: a storage's halo, or a domain."""
    values = np.random.default_rng(1).random((8, 5, 3))
    domain = gtx.domain({I: (-1, 7), J: 5, K: 3})
    if kind == "storage":
        storage = gridbuf.storage.storage(values, halo=((1, 1), (0, 0), (0, 0)))
        phi = gridbuf.gt4py.as_field(storage, (I, J, K))
        out_memory = gridbuf.storage.zeros((6, 5, 3))
        out = gridbuf.gt4py.as_field(out_memory, (I, J, K))
    else:
        phi = gb_next.as_field(domain, values)
        out = gb_next.zeros({I: 6, J: 5, K: 3})
    assert phi.domain == domain
    difference.with_backend(backend)(phi, out=out, offset_provider={})
    np.testing.assert_array_equal(out.ndarray, values[2:] - values[:-2])
    if kind == "storage":
        assert (out_memory.to_numpy() == out.ndarray).all()


@pytest.mark.parametrize("backend", backends())
def test_unstructured(backend: Any) -> None:
    values = np.random.default_rng(2).random((9, 4))
    table = np.stack([np.arange(12) % 9, (np.arange(12) * 5 + 1) % 9], axis=1).astype(np.int32)
    phi = gb_next.as_field((Vertex, K), values)
    out = gb_next.empty({Edge: 12, K: 4})
    edges = gb_next.as_connectivity((Edge, E2VDim), Vertex, table)
    assert gridbuf.owns(phi) and gridbuf.owns(out) and gridbuf.owns(edges)
    edge_sum.with_backend(backend)(phi, out=out, offset_provider={"E2V": edges})
    np.testing.assert_allclose(out.ndarray, values[table[:, 0]] + values[table[:, 1]])


# ---- Storages, through gridbuf.stencil. ----


def step_on(preset: str | None, backend: Any) -> Any:
    """`difference` as a stencil over arrays, which gridbuf takes to the side where the preset computes."""

    @gridbuf.stencil(backend=preset, writes="out")
    def step(
        phi: gridbuf.Field[np.float64],
        out: gridbuf.Field[np.float64],
        *,
        origin: dict[str, tuple[int, ...]],
    ) -> None:
        fields = {
            name: gridbuf.gt4py.as_field(
                array, (I, J, K), origin=dict(zip((I, J, K), origin[name]))
            )
            for name, array in (("phi", phi), ("out", out))
        }
        difference.with_backend(backend)(**fields, offset_provider={})

    return step


@pytest.mark.parametrize("managed", [None, "gt4py", "cuda"])
def test_storages_on_a_device(managed: Any) -> None:
    """By the emulated device: the embedded backend computes in its memory, inside a kernel."""
    values = np.random.default_rng(3).random((8, 5, 3))
    step = step_on("gt:gpu", None)
    with testing.emulated_device():
        phi = gridbuf.storage.storage(
            values, backend="gt:gpu", managed=managed, halo=((1, 1), (0, 0), (0, 0))
        )
        out = gridbuf.storage.zeros((6, 5, 3), backend="gt:gpu", managed=managed)
        step(phi, out)
        # The storage knows of the write: no set_device_modified.
        result = gridbuf.storage.storage(out, device=None).to_numpy()
        np.testing.assert_array_equal(result, values[2:] - values[:-2])
        wrong = gridbuf.storage.zeros((6, 5, 3), "f4", backend="gt:gpu", managed=managed)
        with pytest.raises(TypeError, match="field 'out'.* float32"):
            step(phi, wrong)
        with pytest.raises(ValueError, match="field 'phi'"):
            step(gridbuf.storage.zeros((6, 5), dims="IJ", backend="gt:gpu", managed=managed), out)


@pytest.mark.parametrize("backend", backends())
def test_the_host_side_of_storages_with_a_device(backend: Any) -> None:
    """A stencil of the host marks what it wrote, so the device gets it."""
    values = np.random.default_rng(4).random((8, 5, 3))
    with testing.emulated_device():
        phi = gridbuf.storage.storage(values, device="gpu", halo=((1, 1), (0, 0), (0, 0)))
        out = gridbuf.storage.zeros((6, 5, 3), device="gpu")
        step_on(None, backend)(phi, out)
        assert out.sync_state.state == gridbuf.storage.SyncState.SYNC_HOST_DIRTY
        np.testing.assert_array_equal(out.to_numpy(), values[2:] - values[:-2])
