"""Storages are paired by the names of their dimensions: against numpy.einsum, which pairs by letters."""

from __future__ import annotations

import copy
import itertools
import math
import operator
import pickle
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import gridbuf.storage
import numpy as np
import pytest
from foreign import KINDS, emulated
from gridbuf import _core
from hypothesis import given
from hypothesis import strategies as st


@pytest.fixture(autouse=True, scope="module")
def _device() -> Iterator[None]:
    with emulated():
        yield


Dims = tuple[str, ...]
LETTERS = {
    **{"I": "i", "J": "j", "K": "k", "0": "a", "2": "c", "10": "z"},
    **{"Cell": "e", "Level": "l", "E2C": "n", "tracer": "t"},
}


def read(storage: Any) -> np.ndarray:
    """A copy of the elements, whatever memory they are in."""
    return np.array(gridbuf.storage.storage(storage, device=None))


def make(shape: tuple[int, ...], dims: Any, kind: str = "cpu", **more: Any) -> Any:
    """A storage of small integers in float64, so that sums and products are exact."""
    storage = gridbuf.storage.zeros(shape, dims=tuple(dims), **{**KINDS[kind], **more})
    storage[...] = np.arange(storage.size).reshape(shape) % 7 - 2.0
    return storage


def seen(values: np.ndarray, dims: Dims, target: Dims, extents: dict[str, int]) -> np.ndarray:
    """`values` in the order of `target`, repeated along what it has not: a product with ones, by letters."""
    missing = [name for name in target if name not in dims]
    ones = np.ones([extents[name] for name in missing], values.dtype)
    letters = ["".join(LETTERS[name] for name in names) for names in (dims, missing, target)]
    return np.einsum(f"{letters[0]},{letters[1]}->{letters[2]}", values, ones)


# ---- The proposal's own example, and single rules. ----


@pytest.mark.parametrize("kind", KINDS)
def test_ij_plus_k_is_ijk(kind: str) -> None:
    a, b = make((2, 3), "IJ", kind), make((4,), "K", kind)
    c = a + b
    assert type(c) is type(a)
    assert (c.dims, c.shape) == (("I", "J", "K"), (2, 3, 4))
    for i, j, k in np.ndindex(2, 3, 4):
        assert read(c)[i, j, k] == read(a)[i, j] + read(b)[k]


def test_order_is_that_of_the_first_storage_that_has_all_dims_else_i_j_k_then_numbers() -> None:
    kji, jki, i = make((4, 3, 2), "KJI"), make((3, 4, 2), "JKI"), make((2,), "I")
    assert (i * kji * jki).dims == ("K", "J", "I")
    assert (jki * kji).dims == ("J", "K", "I")
    assert (make((3, 4), ("10", "K")) + make((5, 6), ("I", "2"))).dims == ("I", "K", "2", "10")


def test_extents_of_one_name_must_be_equal_and_one_is_not_stretched() -> None:
    field = make((7, 8), "IJ")
    with pytest.raises(ValueError, match='dimension "J" is 9, but must be 8.*slices of equal'):
        field + make((9,), "J")
    with pytest.raises(ValueError, match='dimension "I" is 1, but must be 7.*integer index'):
        field + make((1,), "I")
    assert (make((1, 8), "IJ") + make((1,), "I")).shape == (1, 8)


@pytest.mark.parametrize("kind", KINDS)
def test_an_axis_of_none_is_the_dimension_at_its_place(kind: str) -> None:
    field, column, plane = (
        make((2, 3, 4), "IJK", kind),
        make((4,), "K", kind),
        make((3, 2), "JI", kind),
    )
    expected = read(field) + read(column)
    for result in (field + column[None, None], column[None, None] + field):
        assert type(result) is type(field) and result.dims == ("I", "J", "K")
        np.testing.assert_array_equal(read(result), expected)
    np.testing.assert_array_equal(
        read(field > plane.T[..., None]), read(field) > read(plane).T[..., None]
    )
    both = column[None, :, None] * plane.T[:, None]  # I, K, J: the order of the places
    assert both.dims == ("I", "K", "J")
    np.testing.assert_array_equal(read(both), read(column)[:, None] * read(plane).T[:, None])
    field += column[None, None, :]
    np.testing.assert_array_equal(read(field), expected)
    field[...] = column[None, None]
    np.testing.assert_array_equal(read(field), np.broadcast_to(read(column), (2, 3, 4)))
    field[:, :, :1] = plane.T[..., None].domain_view
    np.testing.assert_array_equal(read(field)[..., 0], read(plane).T)
    assert (column[None] + column[None]).dims == ("0", "K")  # It has no name.


EXTENTS = {"I": 2, "J": 3, "K": 4}

# What hands on an operand, and with it the property of its axes.
HANDED_ON: dict[str, Any] = {
    "view": lambda s: s,
    "views of views": lambda s: s.transpose().transpose()[..., :].domain_view,
    "ufunc": lambda s: 1.0 * s,
    "ufunc again": lambda s: (s + 1.0) - 1.0,
    "astype": lambda s: s.astype("f4").astype("f8"),
    "copy": lambda s: s.copy(),
    "deepcopy": copy.deepcopy,
    "pickle": lambda s: pickle.loads(pickle.dumps(s)),
    "old pickle": lambda s: pickle.loads(pickle.dumps(s, protocol=2)),
    "copied like": lambda s: _like(s),
    "storage": lambda s: gridbuf.storage.storage(s),
    "function": lambda s: np.clip(s, -100, 100),
    "reduced again": lambda s: np.stack([s, s], axis="n").mean("n"),
}

# What is done with the field and the operand, or with arrays of NumPy's that have the same axes.
USES: dict[str, Any] = {
    "after": lambda a, b: a * b,
    "before": lambda a, b: b - a,
    "in place": lambda a, b: operator.iadd(a.copy(), b),
    "out": lambda a, b: np.add(a, b, out=a.copy()),
    "out alone": lambda a, b: np.multiply(b, 2.0, out=a.copy()),
    "where": lambda a, b: np.add(a, 1.0, out=a.copy(), where=b > 0),
    "where twice": lambda a, b: np.add(a, b, out=a.copy(), where=b > 0),
    "copyto": lambda a, b: _copied(a.copy(), b),
    "copyto where": lambda a, b: _copied(a.copy(), 5.0, where=b > 0),
    "assigned": lambda a, b: _assigned(a.copy(), b),
    "numpy.where": lambda a, b: np.where(b > 0, a, b),
    "clip": lambda a, b: np.clip(a, b, b + 1.0),
    "sum where": lambda a, b: np.sum(a, axis=2, where=b > 0),
    "mean where": lambda a, b: np.mean(a, axis=2, where=b > -5),
}

# The same with an array without names, which is of the host and has all dimensions.
WITH_AN_ARRAY: dict[str, Any] = {
    "operand": lambda a, b: b + np.arange(24.0).reshape(2, 3, 4),
    "operand with an extent of 1": lambda a, b: (a - b) * np.arange(8.0).reshape(2, 1, 4),
    "alternative": lambda a, b: np.where(b > 0, b, np.arange(24.0).reshape(2, 3, 4)),
    "out": lambda a, b: np.add(b, 1.0, out=np.zeros((2, 3, 4))),
}


def _like(storage: Any) -> Any:
    made = gridbuf.storage.empty_like(storage)
    made[...] = storage
    return made


def _copied(a: Any, b: Any, where: Any = True) -> Any:
    np.copyto(a, b, where=where)
    return a


def _assigned(a: Any, b: Any) -> Any:
    a[...] = b
    return a


def _expanded(storage: Any, names: str, leading: bool) -> tuple[Any, np.ndarray]:
    """The storage with an axis of None for each missing name, and its values so."""
    places = "IJK" if leading else "IJK"["IJK".index(names[0]) :]
    key = tuple(slice(None) if name in names else None for name in places)
    return storage[key], read(storage)[key]


def _check_use(kind: str, use: Any, names: tuple[str, ...], all_axes: bool) -> None:
    field = make((2, 3, 4), "IJK", kind)
    for present, hand_on in itertools.product(names, HANDED_ON.values()):
        start = make(tuple(EXTENTS[name] for name in present), present, kind)
        for leading in (True,) if all_axes else (True, False):
            operand, values = _expanded(start, present, leading)
            operand = hand_on(operand)
            assert operand.shape == values.shape
            found, expected = use(field, operand), use(read(field), values)
            assert found.shape == expected.shape
            np.testing.assert_array_equal(read(found), expected)
            if not all_axes:
                assert found.dims == ("I", "J", "K")[: found.ndim]


@pytest.mark.parametrize("use", USES)
@pytest.mark.parametrize("kind", KINDS)
def test_an_added_axis_stretches_whatever_hands_it_on(kind: str, use: str) -> None:
    _check_use(kind, USES[use], ("I", "J", "K", "IJ", "IK", "JK"), all_axes=False)


@pytest.mark.parametrize("use", WITH_AN_ARRAY)
def test_an_added_axis_stretches_to_an_array_without_names(use: str) -> None:
    _check_use("cpu", WITH_AN_ARRAY[use], ("", "I", "J", "K", "IJ", "IK", "JK"), all_axes=True)


@pytest.mark.parametrize("handed", HANDED_ON)
def test_an_axis_that_a_reduction_has_kept_stretches_by_name(handed: str) -> None:
    field = make((2, 3, 4), "IJK")
    turned = field.transpose("K", "I", "J")
    for axes in ("I", "K", ("I", "J"), ("I", "J", "K")):
        numbers = tuple("IJK".index(name) for name in axes)
        top = HANDED_ON[handed](np.max(field, axis=axes, keepdims=True))
        expected = read(field) - read(field).max(numbers, keepdims=True)
        for found in (field - top, -(top - field), field - top.transpose("J", "K", "I")):
            np.testing.assert_array_equal(read(found), expected)
            assert found.dims == ("I", "J", "K")
        np.testing.assert_array_equal(read(turned - top), expected.transpose(2, 0, 1))
        target = gridbuf.storage.zeros((4, 2, 3), dims="KIJ")
        target[...] = top
        np.testing.assert_array_equal(
            read(target).transpose(1, 2, 0), np.broadcast_to(read(top), (2, 3, 4))
        )


def test_an_axis_stretches_once_and_other_extents_of_1_do_not() -> None:
    field, column = make((2, 3, 4), "IJK"), make((4,), "K")
    once = column[None] + make((1, 4), ("n", "K"))  # It is the n of the other: an ordinary one.
    assert (once.dims, once._parameters.stretchable) == (("n", "K"), ())
    with pytest.raises(ValueError, match='"n" is 2, but must be 1.*None or keepdims=True'):
        once + make((2, 4), ("n", "K"))
    stretched = column[None] + np.zeros((5, 4))
    assert (stretched.dims, stretched.shape) == (("0", "K"), (5, 4))
    with pytest.raises(ValueError, match='"0" is 6, but must be 5'):
        stretched + make((6, 4), ("0", "K"))
    with pytest.raises(ValueError, match='"I" is 2, but must be 1'):
        field[:1] + field  # a slice
    with pytest.raises(ValueError, match='"K" is 1, but must be 4'):  # An output does not stretch.
        np.add(field, 1.0, out=field.mean("K", keepdims=True))
    for function in (
        np.sum,
        np.mean,
        np.nanmax,
        np.add.reduce,
    ):  # Nor does what is reduced, into one.
        with pytest.raises(ValueError, match='"K" is 4, but must be 1|"K" is 1, but must be 4'):
            function(field, axis=2, keepdims=True, out=gridbuf.storage.zeros((2, 3, 4)))
    np.clip(field.max("K", keepdims=True), 0.0, 9.0, out=field)  # The operands of ufuncs do.
    assert (read(field) == read(field)[..., :1]).all()
    assert column[None][:0].dims == ("0", "K")
    assert (column[None][:0] + column[None][:0]).shape == (0, 4)


def test_places_and_names_of_axes_of_none() -> None:
    field, column, square = make((2, 3, 4), "IJK"), make((4,), "K"), make((2, 2), "IJ")
    assert (field + column[None]).dims == ("I", "J", "K")  # Places are counted from the last.
    turned = make((3, 2, 4), "JIK")
    found = field[..., 0][..., None] + turned  # K by place, I and J by name
    assert found.dims == ("I", "J", "K")
    np.testing.assert_array_equal(
        read(found), read(field)[..., :1] + read(turned).transpose(1, 0, 2)
    )
    assert (column[None] + column[:, None]).dims == ("K", "0")  # K is K, wherever it is.
    assert (field + column[None, None, None]).dims == ("0", "I", "J", "K")
    assert (column[None, None] + column[None]).dims == ("0", "1", "K")
    with pytest.raises(ValueError, match="None has added.*name its dimensions"):
        np.add(square[:, None], square[None], out=np.zeros((2, 2, 2)))  # places: I, J?, J


@pytest.mark.parametrize("kind", KINDS)
def test_arrays_with_axes_of_none_are_concatenated_and_stacked(kind: str) -> None:
    field, plane = make((2, 3, 4), "IJK", kind), make((2, 3), "IJ", kind)
    for order in (1, -1):
        for made in (
            plane[..., None],
            2.0 * plane[..., None],
            pickle.loads(pickle.dumps(plane))[..., None],
        ):
            arrays = [field, made][::order]
            found = np.concatenate(arrays, axis="K" if order == 1 else 2)
            assert found.dims == ("I", "J", "K")
            np.testing.assert_array_equal(
                read(found), np.concatenate([read(a) for a in arrays], axis=2)
            )
    found = np.stack([plane[..., None], field[..., :1]], axis=0)
    assert found.dims == ("0", "I", "J", "K") and found.shape == (2, 2, 3, 1)


def test_halo_and_aligned_index_are_the_largest_per_dimension() -> None:
    a = make((10, 10), "IJ", halo=((1, 4), (2, 2)), aligned_index=(5, 0))
    b = make((10, 10, 6), "JIK", halo=((2, 3), (3, 0), (1, 0)), aligned_index=(2, 3, 1))
    c = a + b
    assert c.dims == ("J", "I", "K")
    assert c.halo == ((2, 3), (3, 4), (1, 0))
    assert c.aligned_index == (2, 5, 1)


def test_a_halo_that_does_not_fit_is_that_of_the_first() -> None:
    a, b = make((6,), "I", halo=((0, 4),)), make((6,), "I", halo=((3, 0),))
    assert (a + b).halo == ((0, 4),)
    assert (b + a).halo == ((3, 0),)


def test_layout_is_that_of_the_first_extended_as_presets_do() -> None:
    ij = make((4, 5), "IJ", layout=(1, 0))
    assert (ij + make((6,), "K")).layout == (2, 1, 0)
    assert (ij + make((6, 3), ("K", "0"))).layout == (3, 2, 1, 0)
    assert (make((4, 5), "IJ") + make((5, 4), "JI", layout=(0, 1))).layout == (0, 1)
    for preset in ("gt:cpu_kfirst", "gt:cpu_ifirst", "gtmc", "dace:cpu"):
        whole = gridbuf.plan((4, 5, 6), backend=preset)
        for dims, shape in (("IJK", (4, 5, 6)), ("KJI", (6, 5, 4)), ("JKI", (5, 6, 4))):
            first = gridbuf.storage.zeros(shape, dims=dims, backend=preset)
            result = first + make((4, 5, 6), "IJK")
            assert [result.layout[dims.index(name)] for name in "IJK"] == list(whole.layout)


def test_alignment_is_the_least_common_multiple_or_that_of_the_first() -> None:
    a, b = make((6, 5), "IJ", alignment_size=96), make((6, 5), "IJ", alignment_size=80)
    c = a + b
    assert c.alignment_size == 480
    address = c.__array_interface__["data"][0]
    assert address % 480 == 0
    odd = make((6, 5), "IJ", alignment_size=2**20 - 1)
    assert (a + odd).alignment_size == 96
    assert (odd + a).alignment_size == 2**20 - 1


def test_an_output_with_more_dimensions_is_filled() -> None:
    out = make((4, 3, 2), "KJI")
    field = make((2, 3), "IJ")
    assert np.negative(field, out=out) is out
    assert (read(out) == -read(field).T).all()
    out += make((4,), "K")
    assert (read(out) == -read(field).T + read(make((4,), "K"))[:, None, None]).all()


def test_an_output_must_have_all_dimensions_that_take_part() -> None:
    before = make((2, 3), "IJ")
    out = make((2, 3), "IJ")
    with pytest.raises(ValueError, match=r"must have all of .*it lacks 'K'"):
        np.add(out, make((4,), "K"), out=out)
    with pytest.raises(ValueError, match='dimension "J" is 3, but must be 4|is 4, but must be 3'):
        np.add(make((4,), "J"), 1, out=out)
    assert (read(out) == read(before)).all()


# ---- Arrays without names. ----


@pytest.mark.parametrize("shape", [(2, 3, 4), (2, 1, 4), (1, 1, 1), (1, 3, 1)])
def test_an_array_of_the_results_shape_or_with_ones_joins(shape: tuple[int, ...]) -> None:
    field = make((2, 3, 4), "IJK")
    array = np.arange(float(math.prod(shape))).reshape(shape)
    for result in (field * array, array * field):
        assert isinstance(result, gridbuf.storage.CPUStorage)
        assert (read(result) == read(field) * array).all()


def test_an_array_of_the_shape_of_a_storage_has_its_dimensions() -> None:
    surface, out = make((2, 3), "IJ"), make((2, 3, 4), "IJK")
    array = np.arange(6.0).reshape(2, 3)
    result = np.add(surface, array, out=out)
    assert (read(result) == (read(surface) + array)[:, :, None]).all()
    assert (read(surface + array.tolist()) == read(surface) + array).all()


@pytest.mark.parametrize("shape", [(4,), (1,), (3, 4), (3, 1), (1, 4), (1, 1)])
def test_an_array_of_the_last_dimensions_joins_if_their_extents_occur_once(
    shape: tuple[int, ...],
) -> None:
    array = np.arange(1.0, 1.0 + math.prod(shape)).reshape(shape)
    for layout in ((0, 1, 2), (2, 1, 0), (1, 2, 0)):
        field = make((2, 3, 4), "IJK", layout=layout)
        for result in (field * array, array * field, np.where(field > 2, array, array + field)):
            assert result.dims == ("I", "J", "K")
        assert (read(field * array) == read(field) * array).all()
        wanted = np.where(read(field) > 2, array, array + read(field))
        assert (read(result) == wanted).all()
    if 4 in shape:
        with pytest.raises(ValueError, match=r"without names .*as_storage"):
            make((4, 3, 4), "IJK") * array


@pytest.mark.parametrize("shape", [(3,), (2,), (2, 3), (2, 4), (2, 3, 5), (1, 2, 3, 4), (5,)])
def test_other_arrays_are_refused(shape: tuple[int, ...]) -> None:
    field = make((2, 3, 4), "IJK")
    with pytest.raises(ValueError, match=r"without names .*\(2, 3, 4\).*as_storage"):
        field + np.zeros(shape)


def test_an_array_whose_dimensions_are_in_doubt_is_refused() -> None:
    with pytest.raises(ValueError, match=r"dims \('I', 'J'\) and \('J', 'K'\)"):
        np.add(make((3, 3), "IJ"), make((3, 3), "JK"), where=np.ones((3, 3), bool))


def test_an_output_array_has_the_results_shape() -> None:
    field = make((2, 3), "IJ")
    array = np.zeros((2, 3, 4))
    assert np.add(field, make((4,), "K"), out=array) is array
    assert (array == read(field)[:, :, None] + read(make((4,), "K"))).all()
    with pytest.raises(ValueError, match=r"out is an array of shape \(2, 3, 4\).*\(2, 3\)"):
        np.add(field, 1, out=array)


def test_arrays_of_others_with_names_join_by_them() -> None:
    buffer = gridbuf.allocate((3, 2), dims="JI")
    np.asarray(buffer)[...] = np.arange(6).reshape(3, 2)
    field = make((2, 3), "IJ", halo=(0, 1))
    result = field + buffer
    assert (result.dims, result.halo) == (("I", "J"), ((0, 0), (1, 1)))
    assert (read(result) == read(field) + np.asarray(buffer).T).all()
    assert np.add(field, 1, out=buffer) is buffer
    assert (np.asarray(buffer).T == read(field) + 1).all()


# ---- What the extension is asked is checked like any argument. ----

junk = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(max_size=3)
    | st.binary(max_size=3),
    lambda inner: st.lists(inner, max_size=3).map(tuple) | st.lists(inner, max_size=3),
    max_leaves=8,
)


@given(value=junk)
def test_anything_is_joined_or_refused(value: Any) -> None:
    good = make((2, 3), "IJ")._parameters
    named = SimpleNamespace(dims=value, shape=(2, 3))
    for call in (
        lambda: _core._join(good, [value], []),
        lambda: _core._join(good, [good], [named]),
        lambda: _core._join(value, [good], []),
        lambda: _core._join(good, value, value),
        lambda: good.reduced(value, True),
        lambda: good.reduced((1,), value),
        lambda: good.empty(value),
        lambda: _core._align(value, (2, 3), ("K", "J", "I")),
        lambda: _core._align(("I",), (2,), value),
        lambda: _core.Parameters(value),
    ):
        try:
            found = call()
        except (TypeError, ValueError, AttributeError):
            continue
        assert found is not None


def test_parameters_of_results() -> None:
    field = make((2, 3), "IJ", halo=((0, 0), (1, 1)), layout=(1, 0), alignment_size=8)
    profile = make((4,), "K", halo=((1, 0),), alignment_size=12)
    other = SimpleNamespace(dims=("0",), shape=(7,))
    joined = _core._join(field._parameters, [field._parameters, profile._parameters], [other])
    assert (joined.dims, joined.shape) == (("I", "J", "K", "0"), (2, 3, 4, 7))
    result = joined.empty("f4")
    assert (result.dtype, result.halo) == (np.float32, ((0, 0), (1, 1), (1, 0), (0, 0)))
    assert (result.aligned_index, result.layout) == ((0, 1, 1, 0), (3, 2, 1, 0))
    assert result.alignment_size == 24
    assert field._parameters.reduced((0,), False).empty().halo == ((1, 1),)
    kept = field._parameters.reduced((1,), True)
    assert (kept.dims, kept.shape, kept.dtype) == (("I", "J"), (2, 1), field.dtype)
    assert kept.empty().halo == ((0, 0), (0, 0))


def test_equal_parameters_are_one_object() -> None:
    one, other = make((2, 3), "IJ"), make((2, 3), "IJ")
    assert one._parameters is other._parameters
    for different in (
        make((2, 4), "IJ"), make((2, 3), "JI"), make((2, 3), "IJ", layout=(1, 0)), one[:, :, None],
        make((2, 3), "IJ", alignment_size=8), make((2, 3), "IJ", halo=(1, 0)), one.astype("f4"),
        make((2, 3), "IJ", "managed"), make((2, 3), "IJ", aligned_index=(0, 1)),
    ):  # fmt: skip
        assert different._parameters is not one._parameters
    one.halo = (0, 1)
    assert one._parameters is not other._parameters


def test_a_view_is_aligned_by_names() -> None:
    assert _core._align(("K", "I"), (4, 2), ("I", "J", "K")) == ((1, 0), (1,))
    with pytest.raises(ValueError, match=r"dimension of the operand is \"K\".*\('I', 'J'\)"):
        _core._align(("K",), (4,), ("I", "J"))


# ---- Anything against einsum. ----

KINDS_OF_NAMES = {"Level": "vertical", "E2C": "local", "tracer": "data"}
NAMES = tuple(gridbuf.Dim(name, KINDS_OF_NAMES.get(name)) for name in LETTERS)


@st.composite
def fields(draw: st.DrawFn, count: int = 2) -> tuple[dict[str, int], list[dict[str, Any]]]:
    """Extents by name, and the parameters of storages over some of them, in any order, layout, halo and alignment."""
    extents = {name: draw(st.integers(0, 4)) for name in NAMES}
    chosen = []
    for _ in range(count):
        dims = draw(st.lists(st.sampled_from(NAMES), unique=True, max_size=4))
        shape = tuple(extents[name] for name in dims)
        lower = [draw(st.integers(0, extent)) for extent in shape]
        upper = [draw(st.integers(0, extent - low)) for extent, low in zip(shape, lower)]
        chosen.append(
            {
                "shape": shape,
                "dims": tuple(dims),
                "layout": tuple(draw(st.permutations(range(len(dims))))),
                "halo": tuple(zip(lower, upper)),
                "alignment_size": draw(st.sampled_from([1, 8, 24, 64])),
            }
        )
    return extents, chosen


def built(parameters: dict[str, Any], kind: str) -> Any:
    return make(kind=kind, **parameters)


@pytest.mark.parametrize("kind", KINDS)
@given(drawn=fields())
def test_binary_functions_are_einsums(kind: str, drawn: Any) -> None:
    extents, (a, b) = drawn
    first, second = built(a, kind), built(b, kind)
    result = first * second
    assert type(result) is type(first)
    assert set(result.dims) == {*a["dims"], *b["dims"]}
    expected = [seen(read(s), s.dims, result.dims, extents) for s in (first, second)]
    np.testing.assert_array_equal(read(result), expected[0] * expected[1])
    for name, halo, extent in zip(result.dims, result.halo, result.shape):
        own = [s.halo[s.dims.index(name)] for s in (first, second) if name in s.dims]
        largest = (max(low for low, _ in own), max(high for _, high in own))
        assert halo == (largest if sum(largest) <= extent else own[0])
    assert result.alignment_size == math.lcm(a["alignment_size"], b["alignment_size"])
    own_order = sorted(first.dims, key=lambda name: first.layout[first.dims.index(name)])
    kept = sorted(first.dims, key=lambda name: result.layout[result.dims.index(name)])
    assert kept == own_order


@given(drawn=fields(), data=st.data())
def test_storages_brought_to_one_order_by_none_are_einsums(drawn: Any, data: st.DataObject) -> None:
    """As xarray does it: new axes in front, then a transposition. The result has the order that was wanted."""
    extents, chosen = drawn
    operands = [built(parameters, "cpu") for parameters in chosen]
    names = sorted({*operands[0].dims, *operands[1].dims})
    target = tuple(data.draw(st.permutations(names)))

    def brought(storage: Any) -> Any:
        missing = [name for name in target if name not in storage.dims]
        order = (*missing, *storage.dims)
        longer = storage[(*(None for _ in missing), ...)]
        return longer.transpose([order.index(name) for name in target])

    first, second = operands
    result = brought(first) - brought(second)
    assert result.dims == target
    expected = [seen(read(s), s.dims, target, extents) for s in operands]
    np.testing.assert_array_equal(read(result), expected[0] - expected[1])


@pytest.mark.parametrize("kind", KINDS)
@given(drawn=fields(3), data=st.data())
def test_outputs_and_masks_are_einsums(kind: str, drawn: Any, data: st.DataObject) -> None:
    extents, (a, b, m) = drawn
    first, second = built(a, kind), built(b, kind)
    mask = gridbuf.storage.storage(built(m, "cpu"), dtype=bool, **KINDS[kind])
    names = sorted({*a["dims"], *b["dims"], *m["dims"]})
    target = tuple(data.draw(st.permutations(names)))
    out = make(tuple(extents[name] for name in target), target, kind)
    before = read(out)
    assert np.add(first, second, out=out, where=mask) is out
    x, y, chosen = (seen(read(s) * 1.0, s.dims, target, extents) for s in (first, second, mask))
    np.testing.assert_array_equal(read(out), np.where(chosen != 0, x + y, before))


@pytest.mark.parametrize("kind", KINDS)
@given(drawn=fields(1), data=st.data())
def test_reductions_are_einsums(kind: str, drawn: Any, data: st.DataObject) -> None:
    _, (a,) = drawn
    field = built(a, kind)
    reduced = data.draw(
        st.lists(st.sampled_from(a["dims"]), unique=True) if a["dims"] else st.just([])
    )
    left = tuple(name for name in a["dims"] if name not in reduced)
    letters = ["".join(LETTERS[name] for name in names) for names in (a["dims"], left)]
    expected = np.einsum(f"{letters[0]}->{letters[1]}", read(field))
    by_name = np.add.reduce(field, axis=tuple(reduced))
    by_number = np.add.reduce(field, axis=tuple(a["dims"].index(name) for name in reduced))
    for result in (by_name, by_number):
        if not left:
            assert np.isscalar(result)
            assert result == expected
            continue
        assert (result.dims, type(result)) == (left, type(field))
        np.testing.assert_array_equal(read(result), expected)
        assert result.halo == tuple(field.halo[field.dims.index(name)] for name in left)
