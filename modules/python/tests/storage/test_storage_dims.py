"""Dimensions of any name and kind, in everything that has names."""

from __future__ import annotations

import copy
import itertools
import pickle
import random
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import gridbuf
import gridbuf.storage as gs
import numpy as np
import pytest
from foreign import KINDS, emulated

LEVEL = gridbuf.Dim("Level", "vertical")
E2C = gridbuf.Dim("E2C", "local")
TRACER = gridbuf.Dim("tracer", "data")


@dataclass(frozen=True)
class Dimension:
    """As gt4py.next's: a value and a kind."""

    value: str
    kind: str


@pytest.fixture(autouse=True, scope="module")
def _device() -> Iterator[None]:
    with emulated():
        yield


# ---- A name with a kind. ----


def test_a_dim_is_a_str_with_a_kind() -> None:
    assert LEVEL == "Level" and hash(LEVEL) == hash("Level") and LEVEL.kind == "vertical"
    assert type(LEVEL.value) is str and repr(LEVEL) == "Dim('Level', 'vertical')"
    assert repr(gridbuf.Dim("Cell")) == "'Cell'" and gridbuf.Dim("Cell").kind == "horizontal"
    kinds = [gridbuf.Dim(name).kind for name in ("I", "J", "K", "0", "10")]
    assert kinds == ["horizontal", "horizontal", "vertical", "data", "data"]
    assert gridbuf.Dim(LEVEL).kind == "vertical" and gridbuf.Dim(LEVEL, "data").kind == "data"
    assert gridbuf.Dim(Dimension("V2E", "local")).kind == "local"
    for again in (pickle.loads(pickle.dumps(LEVEL)), copy.deepcopy(LEVEL)):
        assert again == LEVEL and again.kind == "vertical"
    for wrong in (5, None, Dimension(5, "local"), Dimension("a", 5)):  # type: ignore[arg-type]
        with pytest.raises(TypeError):
            gridbuf.Dim(wrong)
    for wrong in ("", "a b", "1st", "01", "x" * 64, "×", Dimension("a", "diagonal")):
        with pytest.raises(ValueError, match="dimension"):
            gridbuf.Dim(wrong)
    kinds = ["horizontal", "local", "vertical", "data"]
    for name, kind in itertools.product(["I", "J", "K", "0", "7"], kinds):
        if kind == gridbuf.Dim(name).kind:
            assert gridbuf.Dim(name, kind).kind == kind  # type: ignore[arg-type]
            continue
        for call in (
            lambda: gridbuf.Dim(name, kind),  # type: ignore[arg-type]
            lambda: gs.zeros(3, dims=(Dimension(name, kind),)),
            lambda: gridbuf.declare_dims(**{name: kind}),  # type: ignore[arg-type]
        ):
            with pytest.raises(ValueError, match=f'dimension "{name}" is {kind}, but must be'):
                call()


def test_letters_beyond_ascii_are_normalised() -> None:
    composed, decomposed = "H\u00f6he", "Ho\u0308he"
    assert gridbuf.Dim(decomposed) == composed
    assert gs.zeros(2, dims=(decomposed,)).dims == (composed,)
    field = gs.storage(np.arange(12.0).reshape(3, 4), dims=(composed, "K"))
    calls = {
        "sum": lambda name: np.sum(field, axis=name),
        "several": lambda name: np.sum(field, axis=("K", name)),
        "reduce": lambda name: np.add.reduce(field, axis=name, keepdims=True),
        "method": lambda name: field.max(axis=name, out=gs.zeros(4, dims="K")),
        "mean": lambda name: np.mean(field, axis=name),
        "cumsum": lambda name: np.cumsum(field, axis=name),
        "flip": lambda name: np.flip(field, name),
        "roll": lambda name: np.roll(field, 1, axis=(name,)),
        "transpose": lambda name: np.transpose(field, ("K", name)),
        "moveaxis": lambda name: np.moveaxis(field, name, -1),
        "swapaxes": lambda name: np.swapaxes(field, "K", name),
        "concatenate": lambda name: np.concatenate([field, field], axis=name),
        "stack": lambda name: np.stack([field[0], field[0]], axis=name),
        "split": lambda name: np.split(field, 3, axis=name)[1],
        "index": lambda name: field[{name: 1}],
        "halo": lambda name: gs.zeros((3, 4), dims=(name, "K"), halo={name: 1}),
        "size": lambda name: np.size(field, name),
    }
    for label, call in calls.items():
        for name in (decomposed, gridbuf.Dim(decomposed), Dimension(decomposed, "horizontal")):
            if label in ("index", "halo") and isinstance(name, Dimension):
                continue  # does not have a hash
            found, expected = call(name), call(composed)
            assert getattr(found, "dims", ()) == getattr(expected, "dims", ()), label
            np.testing.assert_array_equal(found, expected)


def test_plain_names_are_horizontal_unless_declared() -> None:
    program = """
import gridbuf, gridbuf.storage as gs
gridbuf.declare_dims(lev="vertical", tracer="data")
field = gs.zeros((5, 6, 2), dims=("Cell", "lev", "tracer"), backend="gt:cpu_kfirst")
assert [gridbuf.Dim(name).kind for name in field.dims] == ["horizontal", "vertical", "data"]
assert field.layout == (1, 2, 0)
gridbuf.declare_dims(lev="vertical")
try:
    gridbuf.declare_dims(lev="local")
except ValueError as error:
    assert "vertical" in str(error) and "local" in str(error)
else:
    raise AssertionError
"""
    subprocess.run([sys.executable, "-c", program], check=True)


@pytest.mark.parametrize("door", [gridbuf.allocate, gs.zeros])
def test_names_go_in_and_come_out(door: Any) -> None:
    for dims in (("Cell", "K"), ("Edge", E2C, LEVEL), ("time", "lat", "lon", "level"), ("é", "_1")):
        array = door((2,) * len(dims), dims=dims)
        assert array.dims == array.__gt_dims__ == dims
        assert [gridbuf.Dim(d).kind for d in array.dims] == [gridbuf.Dim(d).kind for d in dims]
        for again in (pickle.loads(pickle.dumps(array)), copy.copy(array), copy.deepcopy(array)):
            assert repr(again.dims) == repr(array.dims)
    assert door(
        (2, 3), dims=(Dimension("Cell", "horizontal"), Dimension("K", "vertical"))
    ).dims == (
        "Cell",
        "K",
    )
    assert "dims=('Cell', Dim('Level', 'vertical'))" in repr(door((2, 3), dims=("Cell", LEVEL)))
    with pytest.raises(ValueError, match=r'dims\[1\] is "Level"'):
        door((2, 3), dims=("Level", LEVEL))


def test_the_interface_has_the_names() -> None:
    field = gs.zeros((2, 3), dims=("Cell", LEVEL))
    assert field.__gt_data_interface__[None]["dims"] == ("Cell", "Level")
    assert gridbuf.as_buffer(field).dims == ("Cell", "Level")
    assert gs.as_storage(field).dims[1].kind == "vertical"

    class Foreign:
        __gt_data_interface__ = {None: {**field.__gt_data_interface__[None], "dims": field.dims}}

    assert gridbuf.as_buffer(Foreign()).dims[1].kind == "vertical"
    field[...] = Foreign()
    assert gridbuf.get_dims(gridbuf.zeros((2, 3), dims=("Cell", LEVEL))) == ("Cell", "Level")


# ---- Equal names pair, and never equal places. ----


@pytest.mark.parametrize("kind", KINDS)
def test_cells_and_edges_are_two_dimensions(kind: str) -> None:
    values = [np.arange(24.0).reshape(6, 4), np.arange(24.0).reshape(6, 4) ** 2]
    cells = gs.storage(values[0], dims=("Cell", "K"), **KINDS[kind])
    edges = gs.storage(values[1], dims=("Edge", "K"), **KINDS[kind])
    total = cells + edges
    assert total.dims == ("Cell", "Edge", "K") and total.shape == (6, 6, 4)
    found = np.array(gs.storage(total, device=None))
    np.testing.assert_array_equal(found, values[0][:, None] + values[1][None])
    with pytest.raises(ValueError, match="Edge"):
        cells += edges
    with pytest.raises(ValueError, match="Edge"):
        cells[...] = edges


def test_results_are_ordered_by_kind_then_by_name() -> None:
    parts = [
        gs.ones(2, dims=(dim,)) for dim in ("K", TRACER, "Edge", E2C, "0", "Cell", "10", LEVEL)
    ]
    in_order = ("Cell", "Edge", "E2C", "K", "Level", "0", "10", "tracer")
    for order in itertools.islice(itertools.permutations(parts), 0, None, 997):
        assert sum(order[1:], order[0]).dims == in_order


def test_one_name_has_one_kind_in_an_operation() -> None:
    flat = gs.zeros((3, 4), dims=("Cell", "Level"))
    upright = gs.zeros(4, dims=(LEVEL,))
    for operation in (
        lambda: flat + upright,
        lambda: np.where(flat > 0, upright, 0.0),
        lambda: flat.__setitem__(..., upright),
        lambda: np.add(flat, upright, out=flat),
    ):
        with pytest.raises(ValueError, match=r'"Level" is \w+, but must be \w+.*two names'):
            operation()


def test_a_comparison_of_one_name_with_two_kinds_is_an_error_too() -> None:
    for flat in (gs.zeros(4, dims=("Level",)), gs.zeros((3, 4), dims=("Cell", "Level"))):
        for compare in (np.array_equal, np.array_equiv, np.allclose):
            for pair in ((flat, gs.zeros(4, dims=(LEVEL,))), (gs.zeros(4, dims=(LEVEL,)), flat)):
                with pytest.raises(ValueError, match=r'"Level" is \w+, but must be \w+.*two names'):
                    compare(*pair)
    assert not np.array_equal(gs.zeros(4, dims="I"), gs.zeros(4, dims="J"))
    assert not np.array_equal(gs.zeros(4, dims="I"), gs.zeros(3, dims="I"))


def test_a_declaration_is_of_all_names_or_of_none() -> None:
    known = {"declared_first": "local"}
    gridbuf.declare_dims(**known)  # type: ignore[arg-type]
    for wrong in (
        {"declared_no": "nonsense"},
        {"declared_no": 5},
        {"declared_first": "data"},
        {"I": "local"},
        {"0": "vertical"},
        {"not a name": "data"},
        {"decläred": "local", "decla\u0308red": "vertical"},
    ):
        good = {"declared_a": "vertical", "declared_b": "data"}
        for kinds in ({**good, **wrong}, {**wrong, **good}):
            with pytest.raises((TypeError, ValueError)):
                gridbuf.declare_dims(**kinds)  # type: ignore[arg-type]
            for name in good:
                assert gridbuf.Dim(name).kind == "horizontal"
    assert gridbuf.Dim("decläred").kind == "horizontal"
    assert gridbuf.Dim("declared_first").kind == "local"


# ---- Names in arguments. ----


def test_halo_and_aligned_index_by_name() -> None:
    field = gs.zeros((10, 5), dims=("Cell", "K"), halo={"Cell": (0, 3)})
    assert field.halo == ((0, 3), (0, 0)) and field.domain_view.shape == (7, 5)
    field.halo = {"K": 1}
    assert field.halo == ((0, 0), (1, 1))
    field = gs.zeros((10, 5), dims=("Cell", LEVEL), aligned_index={"Level": 2}, alignment_size=64)
    assert field.aligned_index == (0, 2)
    assert (field.__array_interface__["data"][0] + 2 * 8) % 64 == 0
    for wrong in ({"halo": {"Edge": 1}}, {"aligned_index": {"Edge": 1}}, {"halo": {3: 1}}):
        with pytest.raises((ValueError, TypeError)):
            gs.zeros((10, 5), dims=("Cell", "K"), **wrong)


class Emptying:
    """A name that empties the dict in which it is the only reference to itself, while it is read."""

    def __init__(self, names: dict[Any, Any]) -> None:
        self.names = names

    @property
    def kind(self) -> str:
        self.names.clear()
        return "horizontal"

    value = "I"


def test_a_dict_may_change_while_its_names_are_read() -> None:
    field = gs.zeros((4, 4))

    def names(entry: Any) -> dict[Any, Any]:
        made: dict[Any, Any] = {}
        made[Emptying(made)] = entry
        made["J"] = entry
        return made

    for _ in range(50):
        assert gs.zeros((4, 4), halo=names((1, 0))).halo == ((1, 0), (1, 0))
        assert gs.zeros((4, 4), aligned_index=names(10**3 - 997)).aligned_index == (3, 3)
        assert field[names(slice(0, 2))].shape == (2, 2)
        assert gridbuf.allocate((4, 4))[names(slice(0, 2))].shape == (2, 2)
        field[names(slice(0, 2))] = 1.0


def test_a_layout_is_also_the_names_from_the_largest_stride() -> None:
    for names in itertools.permutations(("Cell", "K", "0")):
        buffer = gridbuf.allocate((3, 4, 5), dims=("Cell", "K", "0"), layout=names)
        strides = dict(zip(buffer.dims, buffer.strides))
        assert sorted(strides, key=lambda name: -strides[name]) == [*names]
    by_callable = gridbuf.allocate((3, 4), dims=("Cell", "K"), layout=lambda dims: dims[::-1])
    assert by_callable.layout == (1, 0)
    for wrong in (("Cell",), ("Cell", "Cell"), ("Cell", "Edge"), ("Cell", 0), (0, "Cell")):
        with pytest.raises((ValueError, TypeError)):
            gridbuf.allocate((3, 4), dims=("Cell", "K"), layout=wrong)


@pytest.mark.parametrize("door", [gridbuf.from_array, gs.storage])
def test_views_by_name(door: Any) -> None:
    values = np.arange(24.0).reshape(2, 3, 4)
    made = door(values, dims=("Cell", LEVEL, "0"))
    array = made.base if isinstance(made, np.ndarray) else made
    turned = array.transpose("0", "Cell", "Level")
    assert turned.dims == ("0", "Cell", "Level")
    np.testing.assert_array_equal(np.asarray(turned), values.transpose(2, 0, 1))
    assert array.transpose(["0", "Cell", "Level"]).dims == turned.dims
    cell, level = Dimension("Cell", "horizontal"), Dimension("Level", "vertical")
    assert array.transpose(level, "0", cell).dims == ("Level", "0", "Cell")
    assert gridbuf.allocate((2, 3), dims=(cell, level), layout=(level, cell)).layout == (1, 0)
    picked = array[{"Level": 1, "0": slice(1, None, 2)}]
    assert picked.dims == ("Cell", "0")
    np.testing.assert_array_equal(np.asarray(picked), values[:, 1, 1::2])
    assert array[{}].shape == array.shape
    for wrong in ({"K": 0}, {"Level": 3}, {"Level": [0, 1]}, {5: 1}):
        with pytest.raises((ValueError, IndexError, TypeError)):
            array[wrong]
    with pytest.raises((ValueError, TypeError)):
        array.transpose("Cell", 1, 2)


def test_assignment_and_reductions_by_name() -> None:
    field = gs.storage(np.arange(24.0).reshape(2, 3, 4), dims=("Cell", LEVEL, "0"))
    field[{"Level": 0}] = 7.0
    assert (field.to_numpy()[:, 0] == 7.0).all() and (field.to_numpy()[:, 1] != 7.0).any()
    assert field.sum("Level").dims == ("Cell", "0")
    assert field.mean(("Cell", "0")).dims == ("Level",)
    assert field.mean(Dimension("Level", "vertical")).dims == ("Cell", "0")
    assert np.flip(field, axis=Dimension("Level", "vertical")).dims == field.dims
    np.testing.assert_array_equal(field.max(axis="Level"), field.to_numpy().max(axis=1))
    assert np.sum(field, axis="Cell", keepdims=True).dims == field.dims


@pytest.mark.parametrize("kind", KINDS)
def test_a_storage_knows_its_lower_bounds(kind: str) -> None:
    with emulated():
        make = {**KINDS[kind], "dims": "IJK"}
        field = gs.zeros((6, 5, 4), lower=(1, None, -2), **make)
        assert field.lower == (1, None, -2)
        assert gs.zeros((6, 5, 4), **make).lower == (None, None, None)
        assert gs.zeros((6, 5, 4), lower={"K": 7}, **make).lower == (None, None, 7)
        for same in (
            field.copy(),
            copy.copy(field),
            copy.deepcopy(field),
            pickle.loads(pickle.dumps(field)),
            gs.storage(field),
            gs.as_storage(field),
            gs.zeros_like(field),
            field.astype("f4"),
            field + 1,
            -field,
            np.where(field > 0, field, 2),
            np.cumsum(field, axis="K"),
        ):
            assert same.lower == (1, None, -2)
        for view, lower in (
            (field[2:, 1:, :-1], (3, None, -2)),
            (field[1:3, 0], (2, -2)),
            (field[::2, :, ::-1], (None, None, None)),
            (field[4:3:-1], (5, None, -2)),
            (field.transpose("K", "I", "J"), (-2, 1, None)),
            (field[None], (None, 1, None, -2)),
            (field[{"I": slice(5, None)}], (6, None, -2)),
            (field.sum("K"), (1, None)),
            (field.sum("I", keepdims=True), (None, None, -2)),
            (np.take(field, [0, 0, 2, 3], axis="K"), (1, None, None)),
            (np.sort(field, axis="I"), (None, None, -2)),
            (np.roll(field, 1, axis=0), (1, None, -2)),
            (gs.storage(field, dims=("A", "B", "K")), (1, None, -2)),
            (gs.as_storage(field, lower=(None, 4, 5)), (None, 4, 5)),
        ):
            assert view.lower == lower
        assert "lower=(1, None, -2)" in repr(field) and "lower" not in repr(field[::2, :, ::2])
        line = gs.storage([1.0, 2.0, 3.0], lower=(5,), **KINDS[kind])
        assert np.insert(line, 0, 1.5).lower == (None,) and np.append(line, line[:1]).lower == (
            None,
        )
        wide = gs.storage(np.arange(12.0).reshape(4, 3), halo=(1, 0), lower=(-1, 7), **KINDS[kind])
        gs.fill_halo(wide, "periodic")
        assert on_host(wide)[:, 0].tolist() == [6.0, 3.0, 6.0, 3.0] and wide.lower == (-1, 7)
        again = gs.as_storage(field, lower=(None, 4, 5))
        again[...] = 3
        assert float(field.sum()) == 3 * field.size  # one memory, on all sides
        for wrong, error, text in (
            (1, TypeError, "lower"),
            ((1, 2), ValueError, "lower is"),
            ((1, "a", 2), TypeError, r"lower\[1\]"),
            (
                (1, 2, 2**31),
                ValueError,
                r"lower\[2\] is 2147483648, but must be -2147483644 to 2147483647",
            ),
            ({"A": 1}, ValueError, "lower"),
        ):
            with pytest.raises(error, match=text):
                gs.zeros((6, 5, 4), lower=wrong, **make)


def on_host(storage: Any) -> Any:
    return gs.storage(storage, device=None).to_numpy()


@pytest.mark.parametrize("kind", KINDS)
def test_points_of_one_index_are_paired(kind: str) -> None:
    """Against ndarrays, for random ranges, with a dimension that is not known in some operands."""
    chance = random.Random("lower")
    with emulated():
        for _ in range(60):
            lows = [(chance.randint(-1, 1), chance.choice([None, 1])) for _ in range(2)]
            values = [np.random.default_rng(i).random((chance.randint(3, 6), 4)) for i in range(2)]
            one, other = (
                gs.storage(value, lower=low, **KINDS[kind]) for value, low in zip(values, lows)
            )
            first = max(low[0] for low in lows)
            end = min(low[0] + value.shape[0] for low, value in zip(lows, values))
            parts = [value[first - low[0] : end - low[0]] for value, low in zip(values, lows)]
            total = one - other
            assert total.lower == (first, None if lows[0][1] is lows[1][1] is None else 1)
            np.testing.assert_array_equal(on_host(total), parts[0] - parts[1])
            total[...] = one
            np.testing.assert_array_equal(on_host(total), parts[0])
            np.multiply(one, other, out=total, where=other > 0.5)
            expected = np.where(parts[1] > 0.5, parts[0] * parts[1], parts[0])
            np.testing.assert_array_equal(on_host(total), expected)


def test_a_declared_half_is_refused_beside_its_dimension() -> None:
    assert gridbuf.half("J") == "_StaggeredJ" and gridbuf.half(gridbuf.half("J")) == "J"
    gridbuf.declare_dims(JHalf=gridbuf.half("J"), HalfLevel=gridbuf.half("K"))
    gridbuf.declare_dims(JHalf=gridbuf.half("J"))
    assert gridbuf.Dim("HalfLevel").kind == "vertical" and gridbuf.half("HalfLevel") == "K"
    whole = gs.zeros((3, 3), dims=("I", "J"))
    for name in ("JHalf", "_StaggeredJ"):
        half = gs.zeros((3, 3), dims=("I", name))
        for call in (
            lambda half=half: whole + half,
            lambda half=half: half * whole[0],
            lambda half=half: whole.__setitem__(..., half),
            lambda half=half: np.where(whole > 0, half, 1),
            lambda half=half: gridbuf.copyto(half, whole),
        ):
            with pytest.raises(ValueError, match=f'"(J|{name})".*staggered half'):
                call()
        assert (half + gs.zeros(3, dims=("K",))).dims == ("I", name, "K")
    with pytest.raises(ValueError, match="staggered half"):
        gs.zeros(3, dims=("JHalf",)) + gs.zeros(3, dims=("_StaggeredJ",))
    for kinds, text in (
        ({"JHalf": gridbuf.half("I")}, "must be _StaggeredJ, as declared"),
        ({"JHalf": "vertical"}, "must be horizontal"),
        ({"I": gridbuf.half("J")}, "must be that of I, J, K or a number"),
        ({"Other": gridbuf.Dim("J")}, "must be the staggered half of one"),
    ):
        with pytest.raises(ValueError, match=text):
            gridbuf.declare_dims(**kinds)
    with pytest.raises(ValueError, match="the number 0"):
        gridbuf.half("0")
