"""Stencils of ICON4Py with every field on gridbuf's memory, by its public seams.

ICON4Py needs Python 3.12: `tools/test_next` installs it and runs this. Without it the tests are skipped.
"""

from __future__ import annotations

from typing import Any

import gridbuf
import numpy as np
import pytest

pytest.importorskip("icon4py.model.atmosphere.diffusion", reason="icon4py is not installed")
pytest.importorskip("icon4py.model.atmosphere.dycore", reason="icon4py is not installed")

import gridbuf.gt4py.next as gb_next
from gt4py import next as gtx
from icon4py.model.atmosphere.diffusion.stencils.calculate_nabla2_for_w import (
    calculate_nabla2_for_w,
)
from icon4py.model.atmosphere.dycore.stencils.compute_mass_flux import compute_mass_flux
from icon4py.model.common import dimension as dims
from icon4py.model.common import model_backends
from icon4py.model.common.grid import simple
from icon4py.model.common.utils import data_allocation

LEVELS = 10

BACKENDS = [
    pytest.param(None, id="embedded"),
    pytest.param(gb_next.with_allocator(gtx.gtfn_cpu), id="gtfn_cpu"),
]


@pytest.fixture
def grid() -> Any:
    return simple.simple_grid(allocator=gb_next.allocator, num_levels=LEVELS)


def random_field(grid: Any, allocator: Any, *of: Any) -> Any:
    field = data_allocation.random_field(grid, *of, allocator=allocator)
    assert gridbuf.owns(field)
    return field


@pytest.mark.parametrize("backend", BACKENDS)
def test_laplacian_of_cells(grid: Any, backend: Any) -> None:
    allocator = gb_next.allocator if backend is None else model_backends.get_allocator(backend)
    table = grid.get_connectivity(dims.C2E2CO)
    assert gridbuf.owns(table)
    w = random_field(grid, allocator, dims.CellDim, dims.KDim)
    weights = random_field(grid, allocator, dims.CellDim, dims.C2E2CODim)
    out = data_allocation.zero_field(grid, dims.CellDim, dims.KDim, allocator=allocator)
    assert gridbuf.owns(out)
    calculate_nabla2_for_w.with_backend(backend)(
        w=w,
        geofac_n2s=weights,
        z_nabla2_c=out,
        horizontal_start=0,
        horizontal_end=gtx.int32(grid.num_cells),
        vertical_start=0,
        vertical_end=gtx.int32(LEVELS),
        offset_provider={"C2E2CO": table},
    )
    expected = (w.ndarray[table.ndarray] * weights.ndarray[:, :, None]).sum(axis=1)
    np.testing.assert_allclose(out.ndarray, expected)


@pytest.mark.parametrize("backend", BACKENDS)
def test_mass_flux(grid: Any, backend: Any) -> None:
    allocator = gb_next.allocator if backend is None else backend
    of = (dims.EdgeDim, dims.KDim)
    z_rho_e, vn, ddqz_z_full_e = (random_field(grid, allocator, *of) for _ in range(3))
    theta = random_field(grid, allocator, *of)
    flux, flux_theta = (data_allocation.zero_field(grid, *of, allocator=allocator) for _ in "ab")
    compute_mass_flux.with_backend(backend)(
        z_rho_e=z_rho_e,
        z_vn_avg=vn,
        ddqz_z_full_e=ddqz_z_full_e,
        z_theta_v_e=theta,
        mass_fl_e=flux,
        z_theta_v_fl_e=flux_theta,
        horizontal_start=0,
        horizontal_end=gtx.int32(grid.num_edges),
        vertical_start=0,
        vertical_end=gtx.int32(LEVELS),
        offset_provider={},
    )
    expected = z_rho_e.ndarray * vn.ndarray * ddqz_z_full_e.ndarray
    np.testing.assert_allclose(flux.ndarray, expected)
    np.testing.assert_allclose(flux_theta.ndarray, expected * theta.ndarray)


def test_the_model_on_gridbuf_s_memory() -> None:
    # [icon4py]
    import gridbuf
    import gridbuf.gt4py.next as gb_next
    from icon4py.model.common import dimension as dims
    from icon4py.model.common.grid import simple
    from icon4py.model.common.utils import data_allocation

    grid = simple.simple_grid(allocator=gb_next.allocator)
    w = data_allocation.zero_field(grid, dims.CellDim, dims.KDim, allocator=gb_next.allocator)
    assert gridbuf.owns(w) and gridbuf.owns(grid.get_connectivity(dims.C2E2CO))
    # [/icon4py]
    storage = gridbuf.storage.as_storage(w)
    assert [gridbuf.Dim(name).kind for name in storage.dims] == ["horizontal", "vertical"]
    assert gridbuf.gt4py.as_field(storage).domain == w.domain
    assert np.shares_memory(storage.to_numpy(), w.ndarray)


def test_the_default_allocator_is_icon4py_s() -> None:
    """For the embedded backend, ICON4Py takes GT4Py's default."""
    with gb_next.use():
        allocator = model_backends.get_allocator(None)
        assert allocator is gb_next.allocator and model_backends.is_cpu_backend(None)
    assert model_backends.is_cpu_backend(gb_next.with_allocator(gtx.gtfn_cpu))
