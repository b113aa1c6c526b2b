"""Storages of fields compute with the dimensions of GT4Py: names, kinds, their order, and values."""

from __future__ import annotations

import operator
import random
from collections.abc import Callable
from typing import Any

import gridbuf
import numpy as np
import pytest

gtx = pytest.importorskip("gt4py.next")

import gridbuf.gt4py.next  # noqa: E402
import gridbuf.storage as gs  # noqa: E402
from gt4py.next.ffront import fbuiltins  # noqa: E402

DIMENSIONS = [
    *(gtx.Dimension(name) for name in ("Cell", "Edge", "Vertex")),
    gtx.Dimension("E2C", kind=gtx.DimensionKind.LOCAL),
    gtx.Dimension("K", kind=gtx.DimensionKind.VERTICAL),
]
OPERATIONS: dict[str, tuple[Callable[..., Any], Callable[..., Any], int]] = {
    **{name: (getattr(operator, name), getattr(operator, name), 2) for name in ("add", "sub", "mul", "truediv", "lt")},
    "minimum": (fbuiltins.minimum, np.minimum, 2),
    "where": (fbuiltins.where, np.where, 3),
}  # fmt: skip


def same(field: Any, storage: Any) -> None:
    assert storage.dims == tuple(dim.value for dim in field.domain.dims)
    assert [gridbuf.Dim(name).kind for name in storage.dims] == [d.kind for d in field.domain.dims]
    assert storage.shape == field.domain.shape and storage.dtype == field.ndarray.dtype
    np.testing.assert_array_equal(storage.to_numpy(), field.asnumpy())


@pytest.mark.parametrize("name", OPERATIONS)
def test_arithmetic_of_fields_and_of_their_storages_is_one(name: str) -> None:
    """2,100 random sets of operands over the five dimensions; extents are equal by chance."""
    on_fields, on_storages, count = OPERATIONS[name]
    chance = random.Random(f"dims of {name}")
    seen = set()
    for _ in range(300):
        extents = {dim: chance.choice([1, 2, 2, 3]) for dim in DIMENSIONS}
        fields = []
        for position in range(count):
            # GT4Py wants the dimensions of a field in its order: horizontal, local, vertical.
            dims = [dim for dim in DIMENSIONS if chance.random() < 0.5]
            values = np.array(
                [
                    chance.randint(1, 9)
                    for _ in range(np.prod([extents[d] for d in dims], dtype=int))
                ]
            ).reshape([extents[d] for d in dims])
            kind = bool if count == 3 and position == 0 else float
            fields.append(
                gtx.as_field(dims, (values > 4 if kind is bool else values.astype(float)))
            )
        expected = on_fields(*fields)
        same(expected, on_storages(*map(gs.storage, fields)))
        seen.add(tuple(dim.value for dim in expected.domain.dims))
    assert len(seen) > 12


def test_a_cell_field_plus_an_edge_field_has_both_dimensions() -> None:
    cell, edge, _, _, k = DIMENSIONS
    cells, edges = (gtx.as_field([d, k], np.random.rand(6, 4)) for d in (cell, edge))
    total = gs.storage(cells) + gs.storage(edges)
    assert total.dims == ("Cell", "Edge", "K") and total.shape == (6, 6, 4)
    same(cells + edges, total)


def test_names_kinds_and_memory_go_there_and_back() -> None:
    edge, e2c, k = DIMENSIONS[1], DIMENSIONS[3], DIMENSIONS[4]
    field = gtx.as_field([edge, e2c, k], np.random.rand(4, 2, 3))
    storage = gs.as_storage(field)
    assert [(d, gridbuf.Dim(d).kind) for d in storage.dims] == [
        ("Edge", "horizontal"),
        ("E2C", "local"),
        ("K", "vertical"),
    ]
    back = gridbuf.gt4py.as_field(storage)
    assert back.domain == field.domain
    assert np.shares_memory(back.ndarray, field.ndarray)
    with pytest.raises(ValueError, match="the data dimension"):
        gridbuf.gt4py.as_field(gs.zeros(3, dims=("0",)))
    with pytest.raises(ValueError, match="has no names"):
        gridbuf.gt4py.as_field(np.zeros(3))
    assert gridbuf.gt4py.as_field(gs.zeros(())).domain.dims == ()
