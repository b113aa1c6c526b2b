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


# ---- Ranges. ----


def ranged(*starts: int, extents: tuple[int, ...] = (4, 3)) -> Any:
    """A field over Cell and K that begins at these indices."""
    dims = (DIMENSIONS[0], DIMENSIONS[-1])
    ranges = {d: (s, s + n) for d, s, n in zip(dims, starts, extents)}
    return gtx.as_field(gtx.domain(ranges), np.arange(float(np.prod(extents))).reshape(extents))


PAIRS: dict[str, Callable[[Any, Any], Any]] = {
    "storages": lambda a, b: gs.storage(a) + gs.storage(b),
    "wrapped": lambda a, b: gs.as_storage(a) * gs.as_storage(b),
    "storage and field": lambda a, b: np.add(gs.storage(a), b),
    "field and storage": lambda a, b: np.add(a, gs.as_storage(b)),
    "out": lambda a, b: np.add(gs.storage(a), 1, out=gs.storage(b)),
    "out is a storage without a range": lambda a, b: np.add(a, b, out=gs.zeros(a.shape, dims=gridbuf.get_dims(a))),
    "where": lambda a, b: np.where(gs.storage(a) > 1, gs.storage(a), gs.storage(b)),
    "mask": lambda a, b: np.add(gs.storage(a), 1, where=gs.storage(b, dtype=bool), out=gs.storage(a)),
    "assignment": lambda a, b: gs.storage(a).__setitem__(..., b),
    "assignment of a storage": lambda a, b: gs.storage(a).__setitem__(..., gs.storage(b)),
    "copyto": lambda a, b: gridbuf.copyto(gs.storage(a), gs.storage(b)),
    "copyto of a field": lambda a, b: gridbuf.copyto(gs.storage(a), b),
    "copyto between fields": lambda a, b: gridbuf.copyto(a, b),
    "np.copyto": lambda a, b: np.copyto(gs.storage(a), gs.storage(b)),
    "concatenate": lambda a, b: np.concatenate([gs.storage(a), gs.storage(b)], axis="K"),
}  # fmt: skip


@pytest.mark.parametrize("pair", PAIRS)
def test_fields_of_different_ranges_are_not_paired_by_position(pair: str) -> None:
    """GT4Py takes the common points; an error until gridbuf does, in either order, above and below 0."""
    for starts, others, name in (
        ((0, 0), (1, 0), "Cell"),
        ((0, 2), (0, 0), "K"),
        ((-1, 0), (0, 0), "Cell"),
        ((0, 0), (0, -2), "K"),
        ((3, 3), (3, 4), "K"),
    ):
        one, other = ranged(*starts), ranged(*others)
        if pair == "concatenate" and name == "K":
            assert PAIRS[pair](one, other).shape == (4, 6)
            continue
        with pytest.raises(ValueError, match=f'range of dimension "{name}" is .*must begin as'):
            PAIRS[pair](one, other)
        PAIRS[pair](one, ranged(*starts))
    message = r'range of dimension "Cell" is 1:5, but must begin as that of another operand, 0:4,'
    with pytest.raises(ValueError, match=message):
        gs.storage(ranged(0, 0)) + gs.storage(ranged(1, 0))


def test_arrays_without_a_range_are_paired_by_position() -> None:
    field = ranged(2, 1)
    dims = gridbuf.get_dims(field)
    plain = gs.ones(field.shape, dims=dims)
    expected = field.asnumpy() + 1
    for total in (
        plain + field,
        gs.storage(field) + plain,
        gs.storage(field) + gs.as_storage(field.ndarray, dims=dims) * 0 + 1,
        gs.storage(field)[:] + gs.storage(ranged(0, 0)) * 0 + 1,  # a view has no range
    ):
        np.testing.assert_array_equal(np.asarray(total), expected)
    plain[...] = field
    np.testing.assert_array_equal(np.asarray(plain), field.asnumpy())


def test_a_dimension_and_its_staggered_half_are_refused() -> None:
    """The names are those of GT4Py 1.2; GT4Py 1.1 has none."""
    kind = gtx.DimensionKind.VERTICAL
    whole, half = gtx.Dimension("K", kind=kind), gtx.Dimension("_StaggeredK", kind=kind)
    assert not hasattr(gtx, "flip_staggered") or gtx.flip_staggered(whole) == half
    fields = [gtx.as_field([dim], np.arange(4.0)) for dim in (whole, half)]
    for one, other in (fields, fields[::-1]):
        names = f'"{other.domain.dims[0].value}".*"?{one.domain.dims[0].value}"?'
        with pytest.raises(ValueError, match="staggered half"):
            gs.storage(one) + gs.storage(other)
        with pytest.raises(ValueError, match="staggered half"):
            np.multiply(gs.as_storage(one), other)
        with pytest.raises(ValueError, match="staggered half"):
            gs.storage(one)[...] = other
        with pytest.raises(ValueError, match=names):
            gridbuf.copyto(gs.storage(one), gs.storage(other))
