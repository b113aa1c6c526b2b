"""GHEX's unstructured exchange, which ICON4Py calls, on fields of `gt4py.next` in gridbuf's memory."""

from __future__ import annotations

import numpy as np
import pytest
from on_ranks import HOW, on_ranks

pytest.importorskip("gt4py.next.custom_layout_allocators", reason=f"NOT run: gt4py; {HOW}")

import gridbuf
import gridbuf.gt4py.next as gb_next
from gt4py import next as gtx
from gt4py.next.custom_layout_allocators import horizontal_first_layout_mapper

Cell = gtx.Dimension("Cell")
K = gtx.Dimension("K", kind=gtx.DimensionKind.VERTICAL)
CELLS, LEVELS = 11, 5
LAYOUTS = {
    "horizontal": horizontal_first_layout_mapper,
    "vertical": gb_next.vertical_contiguous_layout_mapper,
}


@on_ranks(4, engine=("ghex",))
def test_halos_are_filled_in_fields_of_both_layouts(engine: str) -> None:
    """A ring of cells: each rank has 11, and the two next to them as its halo."""
    from ghex import unstructured
    from ghex.context import make_context
    from mpi4py import MPI

    context = make_context(MPI.COMM_WORLD, True)
    rank, size = context.rank(), context.size()
    whole = np.random.default_rng(1).random((size * CELLS, LEVELS))
    first = rank * CELLS
    ids = np.arange(first - 1, first + CELLS + 1) % (size * CELLS)
    halo = np.array([0, CELLS + 1])
    domain = unstructured.DomainDescriptor(rank, ids.tolist(), halo.tolist())
    generator = unstructured.HaloGenerator.from_gids(ids[halo].tolist())
    pattern = unstructured.make_pattern(context, generator, [domain])
    exchange = unstructured.make_communication_object(context)
    for mapper in LAYOUTS.values():
        allocator = gb_next.FieldAllocator(layout_mapper=mapper)
        field = gtx.zeros({Cell: CELLS + 2, K: LEVELS}, allocator=allocator)
        assert gridbuf.owns(field)
        gridbuf.copyto(field[Cell(1) : Cell(CELLS + 1)], whole[first : first + CELLS])
        descriptor = unstructured.make_field_descriptor(domain, field.ndarray)
        exchange.exchange([pattern(descriptor)]).wait()
        np.testing.assert_array_equal(field.ndarray, whole[ids])
