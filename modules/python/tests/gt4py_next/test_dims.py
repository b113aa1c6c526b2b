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


def pointwise(*arrays: Any) -> dict[tuple[int, int], float]:
    """The elements of the first array by index, at the points that all of them have."""
    values: list[dict[tuple[int, int], float]] = []
    for array in arrays:
        elements = array.asnumpy() if hasattr(array, "asnumpy") else array.to_numpy()
        first = gs.as_storage(array).lower
        assert None not in first
        values.append({(i + first[0], k + first[1]): v for (i, k), v in np.ndenumerate(elements)})
    return {at: v for at, v in values[0].items() if all(at in other for other in values)}


STARTS = [((0, 0), (1, 0)), ((0, 2), (0, 0)), ((-1, 0), (0, 0)), ((0, 0), (0, -2)), ((3, 3), (2, 4)), ((0, 0), (9, 0))]  # fmt: skip

RESULTS: dict[str, tuple[Callable[[Any, Any], Any], Callable[[Any, Any], Any]]] = {
    "storages": (lambda a, b: gs.storage(a) + gs.storage(b), operator.add),
    "wrapped": (lambda a, b: gs.as_storage(a) * gs.as_storage(b), operator.mul),
    "storage and field": (lambda a, b: np.subtract(gs.storage(a), b), operator.sub),
    "field and storage": (lambda a, b: np.subtract(a, gs.as_storage(b)), operator.sub),
    "elementwise": (lambda a, b: np.where(gs.storage(a) > -1, gs.storage(a), gs.storage(b)), lambda a, b: a),
    "slices": (lambda a, b: gs.as_storage(a)[1:] + gs.as_storage(b)[:, :-1], None),
    "again": (lambda a, b: [gs.as_storage(a) + gs.as_storage(b) for _ in range(3)][-1], operator.add),
}  # fmt: skip


@pytest.mark.parametrize("name", RESULTS)
def test_fields_of_different_ranges_give_the_common_points(name: str) -> None:
    """As GT4Py does; in either order, above and below 0, and without a common point."""
    on_storages, on_values = RESULTS[name]
    for starts, others in STARTS:
        for one, other in ((starts, others), (others, starts)):
            first, second = ranged(*one), ranged(*other)
            found = on_storages(first, second)
            if on_values is None:
                assert found.to_numpy().tolist() == (first[1:] + second[:, :-1]).asnumpy().tolist()
                continue
            left, right = pointwise(first, second), pointwise(second, first)
            assert pointwise(found) == {at: on_values(left[at], right[at]) for at in left}
            if left and hasattr(first, "__add__"):
                assert gridbuf.gt4py.as_field(found).domain == (first + second).domain


WRITES: dict[str, Callable[[Any, Any], Any]] = {
    "out": lambda target, value: np.add(value, 0, out=target),
    "out of another function": lambda target, value: np.clip(value, -99, 99, out=target),
    "where": lambda target, value: np.add(value, 0, where=value > -1, out=target),
    "assignment": lambda target, value: target.__setitem__(..., value),
    "domain_view": lambda target, value: target.domain_view.__setitem__(..., value),
    "copyto": lambda target, value: gridbuf.copyto(target, value),
    "np.copyto": lambda target, value: np.copyto(target, value),
}  # fmt: skip


@pytest.mark.parametrize("write", WRITES)
@pytest.mark.parametrize("is_field", [False, True])
def test_what_is_written_has_the_points_of_the_target(write: str, is_field: bool) -> None:
    wide = ranged(-2, -1, extents=(9, 8))
    small = gs.as_storage(ranged(1, 2))
    value = wide if is_field and write in ("assignment", "copyto") else gs.as_storage(wide)
    WRITES[write](small, value)
    assert pointwise(small) == pointwise(wide, small)
    # The points below 0 are the halo, of which domain_view has none.
    for start in ((0, 6), (5, 0), *([] if write == "domain_view" else [(-3, 0)])):
        target = gs.as_storage(ranged(*start))
        before = target.to_numpy().copy()
        with pytest.raises(
            ValueError, match="the range of dimension .* is .*but must be within that of the value"
        ):
            WRITES[write](target, value)
        np.testing.assert_array_equal(target.to_numpy(), before)


def test_functions_that_pair_by_position_want_equal_ranges() -> None:
    one, other = gs.storage(ranged(0, 0)), gs.storage(ranged(1, 0))
    for call in (
        lambda: np.concatenate([one, other], axis="K"),
        lambda: np.array_equal(one, other),
        lambda: np.dot(one, other.T),
        lambda: np.stack([one, other]),
    ):
        with pytest.raises(
            ValueError,
            match='range of dimension "Cell" is 1:5, but must begin as that of another operand, 0:4',
        ):
            call()
    assert np.concatenate([one, other], axis="Cell").lower == (None, 0)
    with pytest.raises(ValueError, match="the start of src's ranges"):
        gridbuf.copyto(ranged(0, 0), ranged(1, 0))
    with pytest.raises(ValueError, match="but must be within that of the value, 1:5"):
        np.sum(one, where=gs.storage(other, dtype=bool))


def test_arrays_without_a_range_are_paired_by_position() -> None:
    field = ranged(2, 1)
    dims = gridbuf.get_dims(field)
    plain = gs.ones(field.shape, dims=dims)
    expected = field.asnumpy() + 1
    for total in (
        plain + field,
        gs.storage(field) + plain,
        gs.storage(field) + gs.as_storage(field.ndarray, dims=dims) * 0 + 1,
        gs.storage(field) + gs.as_storage(gs.storage(ranged(0, 0)), lower=(None, None)) * 0 + 1,
    ):
        assert total.lower == (2, 1)
        np.testing.assert_array_equal(np.asarray(total), expected)
    plain[...] = field
    np.testing.assert_array_equal(np.asarray(plain), field.asnumpy())


def test_ranges_go_there_and_back() -> None:
    field = ranged(2, -1)
    storage = gs.as_storage(field)
    back = gridbuf.gt4py.as_field(storage)
    assert back.domain == field.domain and np.shares_memory(back.ndarray, field.ndarray)
    assert gridbuf.gt4py.as_field(storage, [*field.domain.dims]).domain == field.domain
    part = gridbuf.gt4py.as_field(storage[1:, 2:])
    assert part.domain == field[1:, 2:].domain
    assert gs.storage(field[1:, 2:]).lower == (3, 1) and gs.zeros_like(field).lower == (2, -1)


def test_random_pairs_of_fields_are_gt4pys() -> None:
    """2,000 pairs over I, its half and K with random ranges: GT4Py's dimensions, domain and values, or refused as there."""
    horizontal = [gtx.Dimension("I"), gtx.Dimension("_StaggeredI"), gtx.Dimension("J")]
    vertical = gtx.Dimension("K", kind=gtx.DimensionKind.VERTICAL)
    chance = random.Random("ranges")
    refused = narrowed = 0
    knows_halves = hasattr(gtx, "flip_staggered")
    for _ in range(2000):
        fields = []
        for _ in range(2):
            dims = [*(d for d in horizontal if chance.random() < 0.5), vertical]
            if set(horizontal[:2]) <= set(dims):
                dims.remove(chance.choice(horizontal[:2]))
            starts = [chance.randint(-3, 3) for _ in dims]
            extents = [chance.randint(1, 5) for _ in dims]
            domain = gtx.domain({d: (s, s + n) for d, s, n in zip(dims, starts, extents)})
            fields.append(gtx.as_field(domain, np.random.default_rng(len(dims)).random(extents)))
        names = {d.value for field in fields for d in field.domain.dims}
        is_mixed = {"I", "_StaggeredI"} <= names
        if not knows_halves and "_StaggeredI" in names and not is_mixed:
            continue  # GT4Py 1.1 has another order of dimensions
        try:
            expected = fields[0] + fields[1]
        except Exception:
            expected = None
            assert is_mixed
        if expected is None or is_mixed:
            refused += 1
            with pytest.raises(ValueError, match="staggered half"):
                gs.storage(fields[0]) + gs.storage(fields[1])
            continue
        found = gs.storage(fields[0]) + gs.as_storage(fields[1])
        same(expected, found)
        assert found.lower == tuple(r.start for r in expected.domain.ranges)
        narrowed += any(expected.domain[d] != f.domain[d] for f in fields for d in f.domain.dims)
    assert refused > 300 and narrowed > 100


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
