"""ufuncs, reductions and NumPy's functions on storages: what they compute, where, and what they leave as it was."""

from __future__ import annotations

import gc
import importlib.util
import io
import itertools
import operator
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import gridbuf.storage
import numpy as np
import pytest
from foreign import KINDS, emulated
from gridbuf import testing
from gridbuf.storage import SyncState, _call, _cupy, _table


@pytest.fixture(autouse=True)
def _device() -> Iterator[None]:
    with emulated():
        yield


def read(storage: Any) -> np.ndarray:
    """A copy of the elements, whatever memory they are in."""
    return np.array(gridbuf.storage.storage(storage, device=None))


def make(values: Any, kind: str = "cpu", **more: Any) -> Any:
    return gridbuf.storage.storage(np.asarray(values), **{**KINDS[kind], **more})


def numbered(
    kind: str = "cpu", shape: tuple[int, ...] = (2, 3, 4), dtype: Any = float, **more: Any
) -> Any:
    return make(np.arange(1, 1 + np.prod(shape)).reshape(shape).astype(dtype), kind, **more)


# ---- ufuncs. ----

UFUNCS = [
    np.add, np.subtract, np.multiply, np.divide, np.power, np.floor_divide, np.hypot, np.maximum, np.copysign,
    np.less, np.equal, np.logical_and, np.negative, np.exp, np.sqrt, np.isfinite, np.sign, np.divmod, np.modf, np.frexp,
]  # fmt: skip


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("ufunc", UFUNCS, ids=lambda ufunc: ufunc.__name__)
def test_a_ufunc_is_numpys(kind: str, ufunc: np.ufunc) -> None:
    inputs = [numbered(kind), numbered(kind)[::-1, ::-1, ::-1]][: ufunc.nin]
    arrays = [read(storage) for storage in inputs]
    results, expected = ufunc(*inputs), ufunc(*arrays)
    if ufunc.nout == 1:
        results, expected = (results,), (expected,)
    assert isinstance(results, tuple)
    for result, values in zip(results, expected, strict=True):
        assert type(result) is type(inputs[0])
        assert result.dtype == values.dtype
        np.testing.assert_array_equal(read(result), values)


OPERATORS = [
    operator.add, operator.sub, operator.mul, operator.truediv, operator.floordiv, operator.mod, operator.pow,
    operator.lt, operator.le, operator.eq, operator.ne, operator.gt, operator.ge, divmod,
]  # fmt: skip


@pytest.mark.parametrize("function", OPERATORS, ids=lambda function: function.__name__)
def test_operators_are_numpys_in_both_directions(function: Callable[..., Any]) -> None:
    a, b = numbered(), numbered()[::-1]
    x, y = read(a), read(b)
    cases = [((a, b), (x, y)), ((a, 3), (x, 3)), ((3, a), (3, x))]
    for operands, arrays in cases:
        found, expected = function(*operands), function(*arrays)
        if not isinstance(found, tuple):
            found, expected = (found,), (expected,)
        for one, values in zip(found, expected, strict=True):
            np.testing.assert_array_equal(read(one), values)


@pytest.mark.parametrize("kind", KINDS)
def test_operators_in_place_write_to_the_storage_itself(kind: str) -> None:
    a = numbered(kind)
    view, same, expected = a[1], a, read(a)
    a += 1
    a *= numbered(kind, (4,), dims="K")
    a -= view
    expected = (expected + 1) * np.arange(1.0, 5.0)
    expected -= expected[1]
    assert a is same
    np.testing.assert_array_equal(read(a), expected)
    np.testing.assert_array_equal(read(view), expected[1])


@pytest.mark.parametrize("left", ["i1", "u4", "i8", "f4", "f8", "c8", "?", "m8[s]"])
@pytest.mark.parametrize(
    "right", ["i2", "u8", "f2", "c16", "?", 2, 2.5, 1j, True, np.float64(1), np.int8(1)]
)
def test_dtypes_are_numpys(left: str, right: Any) -> None:
    values = np.zeros(3, left)
    other = np.zeros(3, right) if isinstance(right, str) else right
    try:
        expected = np.add(values, other).dtype
    except TypeError as error:
        with pytest.raises(type(error)):
            np.add(make(values), make(other) if isinstance(right, str) else right)
        return
    for _ in range(2):  # The second time from the result of the first.
        result = np.add(make(values), make(other) if isinstance(right, str) else right)
        assert result.dtype == expected


def test_options_are_numpys() -> None:
    a = numbered(dtype="i4")
    assert np.add(a, 1, dtype="f4").dtype == "f4"
    assert np.true_divide(a, 2, dtype=np.float32, casting="same_kind").dtype == "f4"
    assert np.add(a, a, signature="dd->d").dtype == "f8"
    with pytest.raises(TypeError, match="Cannot cast"):
        np.add(a, 1.5, out=a)
    assert np.add(a, 1.5, out=a, casting="unsafe") is a
    with pytest.raises(TypeError, match="order and subok do not apply.*out="):
        np.add(a, 1, order="C")


def test_a_number_out_of_bounds_is_numpys_error_each_time() -> None:
    a = numbered(dtype="u1")
    a + 1
    for _ in range(2):
        with pytest.raises(OverflowError):
            a + 300


def test_where_leaves_the_other_elements_alone() -> None:
    a, out = numbered(), numbered() * -1
    before, mask = read(out), read(a) % 2 == 0
    assert np.add(a, 10, out=out, where=a % 2 == 0) is out
    np.testing.assert_array_equal(read(out), np.where(mask, read(a) + 10, before))
    np.add(a, 20, out=out, where=mask)
    np.testing.assert_array_equal(read(out), np.where(mask, read(a) + 20, before))
    np.add(a, 30, out=out, where=False)
    np.testing.assert_array_equal(read(out), np.where(mask, read(a) + 20, before))


@pytest.mark.parametrize("kind", KINDS)
def test_several_outputs_some_given(kind: str) -> None:
    a, quotient = numbered(kind), numbered(kind)
    found, rest = np.divmod(a, 5, out=(quotient, None))
    assert found is quotient
    assert rest.dims == a.dims
    np.testing.assert_array_equal(read(quotient), read(a) // 5)
    np.testing.assert_array_equal(read(rest), read(a) % 5)
    whole = numbered(kind)
    assert np.modf(a / 4, out=(None, whole))[1] is whole
    np.testing.assert_array_equal(read(whole), np.floor(read(a) / 4))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    ("source", "target"),
    [
        (slice(None, -1), slice(1, None)),
        (slice(1, None), slice(None, -1)),
        (slice(None, None, -1), slice(None)),
    ],
)
def test_overlapping_inputs_and_outputs_are_numpys(kind: str, source: slice, target: slice) -> None:
    storage = numbered(kind, (9,))
    array = read(storage)
    np.add(storage[source], storage[target], out=storage[target])
    np.add(array[source], array[target], out=array[target])
    np.testing.assert_array_equal(read(storage), array)
    np.copyto(storage[target], storage[source])
    np.copyto(array[target], array[source])
    np.testing.assert_array_equal(read(storage), array)


@pytest.mark.parametrize("kind", KINDS)
def test_a_mask_that_shares_memory_with_the_output_is_as_if_read_first(kind: str) -> None:
    rng = np.random.default_rng(3)
    for _ in range(20):
        values = rng.integers(0, 2, (5, 5)).astype(bool)
        for mask_of in (
            lambda a: a[::-1],
            lambda a: a[:, ::-1],
            lambda a: a[::-1, ::-1],
            lambda a: a,
        ):
            expected = np.where(mask_of(values), ~values, values)
            for call in (
                lambda a, m: np.logical_not(a, out=a, where=m),
                lambda a, m: np.copyto(a, np.logical_not(a), where=m),
                lambda a, m: gridbuf.copyto(a, np.logical_not(a), where=m),
                lambda a, m: a.__setitem__(m, np.logical_not(a)[m]),
                lambda a, m: np.copyto(a, np.logical_not(a), where=m, casting="no"),
            ):
                storage = make(values, kind)
                call(storage, mask_of(storage))
                np.testing.assert_array_equal(read(storage), expected)
        storage = make(values, kind)
        np.any(storage, axis="J", where=storage[::-1], out=storage[:, 0])
        np.testing.assert_array_equal(
            read(storage)[:, 0], np.any(values, axis=1, where=values[::-1])
        )
    with pytest.raises(TypeError):
        gridbuf.copyto([1, 2], make([1, 2]))


def test_other_methods_are_a_type_error_that_names_to_numpy() -> None:
    a = numbered()
    with pytest.raises(TypeError, match=r"numpy\.add\.at\(storage\.to_numpy\(\), 0, 1\)"):
        np.add.at(a, 0, 1)


@pytest.mark.parametrize("kind", KINDS)
def test_other_methods_of_ufuncs_give_plain_arrays(kind: str) -> None:
    a, b = numbered(kind, (2, 3)), numbered(kind, (3, 2))
    for function in (
        lambda a, b: np.add.accumulate(a),
        lambda a, b: np.add.accumulate(a, axis=1),
        lambda a, b: np.multiply.outer(a, b),
        lambda a, b: np.add.reduceat(a, [0, 1], axis=1),
    ):
        found = function(a, b)
        assert type(found) is np.ndarray
        np.testing.assert_array_equal(found, function(read(a), read(b)))


@pytest.mark.parametrize("kind", KINDS)
def test_generalised_ufuncs_count_by_position(kind: str) -> None:
    a, b = numbered(kind, (2, 3)), numbered(kind, (4, 3), dims="JI")
    for found in (a @ b.T, np.matmul(a, b.T)):
        assert type(found) is np.ndarray
        np.testing.assert_array_equal(found, read(a) @ read(b).T)
    out = numbered(kind, (2, 4), dims=("2", "5"))
    assert np.matmul(a, b.T, out=out) is out
    np.testing.assert_array_equal(read(out), read(a) @ read(b).T)
    with pytest.raises(TypeError, match="Cannot cast"):
        np.matmul(a, b.T, out=out.astype("i4"))


def test_others_that_handle_ufuncs_get_their_turn() -> None:
    class Mine:
        def __array_ufunc__(self, *_: Any, **__: Any) -> str:
            return "mine"

    class NotMine:
        __array_ufunc__ = None

        def __radd__(self, other: Any) -> str:
            return "not mine"

    a = numbered()
    assert np.add(a, Mine()) == "mine"
    assert np.add.accumulate(a, out=Mine()) == "mine"
    assert a + NotMine() == "not mine"


def test_dtypes_that_storages_do_not_have_are_a_type_error() -> None:
    with pytest.raises(TypeError):
        numbered() + object()
    with pytest.raises(TypeError):
        numbered() + "a"


# ---- Reductions. ----


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("axis", [0, -1, 2, "J", (0, 2), ("I", "K"), ("K", 0), (), None])
@pytest.mark.parametrize("ufunc", [np.add, np.multiply, np.maximum, np.logical_and])
def test_reduce_drops_the_reduced_dimensions(kind: str, axis: Any, ufunc: np.ufunc) -> None:
    a = numbered(kind, halo=((0, 1), (1, 1), (2, 0)))
    named = axis if isinstance(axis, tuple) else (axis,)
    axes = (
        None if axis is None else tuple("IJK".index(n) if isinstance(n, str) else n for n in named)
    )
    expected = ufunc.reduce(read(a), axis=axes)
    result = ufunc.reduce(a, axis=axis)
    if axis is None:
        assert isinstance(result, np.generic)
        assert result == expected
        assert result.dtype == expected.dtype
        return
    left = [i for i in range(3) if i not in [n % 3 for n in axes or ()]]
    assert type(result) is type(a)
    assert result.dims == tuple("IJK"[i] for i in left)
    assert result.halo == tuple(a.halo[i] for i in left)
    np.testing.assert_array_equal(read(result), expected)
    kept = ufunc.reduce(a, axis=axis, keepdims=True)
    assert kept.dims == a.dims
    np.testing.assert_array_equal(read(kept), ufunc.reduce(read(a), axis=axes, keepdims=True))


def test_reduce_counts_as_numpy_does_without_an_axis() -> None:
    assert np.add.reduce(numbered()).dims == ("J", "K")


def test_reduce_with_dtype_initial_and_where() -> None:
    a = numbered(dtype="i4")
    assert np.add.reduce(a, axis="I", dtype="f4").dtype == "f4"
    assert np.maximum.reduce(a, axis=None, initial=100) == 100
    surface = numbered(shape=(2, 3)) > 2
    expected = np.add.reduce(read(a), axis=2, where=read(surface)[:, :, None])
    np.testing.assert_array_equal(read(np.add.reduce(a, axis="K", where=surface)), expected)
    by_shape = np.add.reduce(a, axis="K", where=read(surface)[:, :, None])
    np.testing.assert_array_equal(read(by_shape), expected)
    with pytest.raises(ValueError, match=r"none beyond the array's, \('I', 'J'\)"):
        np.add.reduce(surface, axis="I", where=a > 0)


@pytest.mark.parametrize("kind", KINDS)
def test_reduce_into_an_output(kind: str) -> None:
    a = numbered(kind)
    expected = read(a).sum(axis=2)
    turned = numbered(kind, (3, 2), dims="JI")
    assert np.add.reduce(a, axis="K", out=turned) is turned
    np.testing.assert_array_equal(read(turned), expected.T)
    wider = numbered(kind, (3, 5, 2), dims="J0I")
    assert np.add.reduce(a, axis="K", out=wider) is wider
    np.testing.assert_array_equal(read(wider), np.repeat(expected.T[:, None], 5, axis=1))
    if kind in ("cpu", "synced"):
        array = np.zeros((2, 3))
        assert np.add.reduce(a, axis="K", out=array) is array
        np.testing.assert_array_equal(array, expected)
    with pytest.raises(ValueError, match="must have all of .* lacks 'J'"):
        np.add.reduce(a, axis="K", out=numbered(kind, (2,), dims="I"))


TYPES = ["?", "i1", "i4", "u8", "f2", "f8", "c8"]


def same(call: Callable[..., Any], given: Any, expected_of: Any, label: Any) -> None:
    """`call` with an array of gridbuf's and with one of NumPy's: equal bits and dtype, or an error in both."""
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            expected = call(expected_of)
        except (TypeError, ValueError) as error:
            with pytest.raises((TypeError, ValueError)):
                call(given)
                raise AssertionError(f"{label}: NumPy raises {error!r}")
            return
        found = call(given)
    values = read(found) if isinstance(found, gridbuf.storage.Storage) else np.asarray(found)
    assert values.dtype == np.asarray(expected).dtype, label
    np.testing.assert_array_equal(values, expected, err_msg=str(label))


def for_reductions(dtype: str) -> np.ndarray:
    """Values whose sums and products do not fit narrow types."""
    values = np.array([[60000.3, 2.5, -3.25, 0], [60000, 200, 7.7, 1]])
    with np.errstate(all="ignore"):
        return values.astype(np.int64).astype(dtype) if dtype[0] in "?iu" else values.astype(dtype)


REDUCTIONS = sorted(
    name
    for name, row in _table.ROWS.items()
    if row.rule == "reduces" and "out" in _call.signature_of(getattr(np, name, len)).parameters
)  # fmt: skip


@pytest.mark.parametrize("name", REDUCTIONS)
def test_a_reduction_into_an_output_of_any_dtype_is_numpys(name: str) -> None:
    """NumPy computes in a dtype that follows from `out`, too, and casts to it as it likes."""
    function = getattr(np, name)
    q = (30,) if "percentile" in name else ([0.25, 0.5],) if "quantile" in name else ()
    first = ("0",) if "quantile" in name else ()
    for dtype, out_dtype in itertools.product(TYPES, TYPES):
        array = for_reductions(dtype)
        storage = make(array)
        for axis, keepdims in itertools.product([None, 0, 1], [False, True]):
            shape = np.any(array, axis=axis, keepdims=keepdims).shape
            dims = (
                storage.dims
                if keepdims
                else tuple(d for i, d in enumerate("IJ") if axis not in (None, i))
            )
            shape, dims = (2,) * len(first) + shape, (*first, *dims)

            def reduce(a: Any) -> Any:
                is_numpys = isinstance(a, np.ndarray)
                out = (
                    np.zeros(shape, out_dtype)
                    if is_numpys
                    else gridbuf.storage.zeros(shape, out_dtype, dims=dims)
                )
                assert function(a, *q, axis=axis, out=out, keepdims=keepdims) is out
                return out

            same(reduce, storage, array, (name, dtype, out_dtype, axis, keepdims))


BINARY = [
    value
    for value in vars(np).values()
    if isinstance(value, np.ufunc) and (value.nin, value.nout, value.signature) == (2, 1, None)
]


@pytest.mark.parametrize("ufunc", BINARY, ids=lambda ufunc: ufunc.__name__)
def test_reduce_with_any_dtypes_and_options_is_numpys(ufunc: np.ufunc) -> None:
    mask = np.array([[True, False, True, True], [False, False, True, False]])
    for dtype, out_dtype in itertools.product(TYPES, [None, *TYPES]):
        array = for_reductions(dtype)
        for where, initial, given in itertools.product(
            [None, mask], [None, 2.5, 3], [None, "f4"] if dtype in ("i4", "f2") else [None]
        ):
            options: dict[str, Any] = {} if initial is None else {"initial": initial}
            options |= {} if given is None else {"dtype": given}

            def reduce(a: Any) -> Any:
                wrap = np.asarray if isinstance(a, np.ndarray) else make
                more = dict(options)
                if where is not None:
                    more["where"] = wrap(where) if wrap is np.asarray else make(where.T, dims="JI")
                if out_dtype is None:
                    return ufunc.reduce(a, axis=1, **more)
                out = np.zeros(2, out_dtype) if wrap is np.asarray else make(np.zeros(2, out_dtype))
                return ufunc.reduce(a, axis=1, out=out, **more)

            label = (ufunc.__name__, dtype, out_dtype, where is None, options)
            same(reduce, make(array), array, label)


@pytest.mark.parametrize("kind", KINDS)
def test_outputs_of_reductions_are_numpys_on_every_side(kind: str) -> None:
    for name, out_dtype in itertools.product(REDUCTIONS, ["f8", "i4", "f2"]):
        q = (0.5,) if "quantile" in name or "percentile" in name else ()
        array = for_reductions("f2")

        def reduce(a: Any) -> Any:
            kept = np.zeros(4, out_dtype)
            out = kept if isinstance(a, np.ndarray) else make(kept, kind, dims="J")
            return getattr(np, name)(a, *q, axis=0, out=out)

        same(reduce, make(array, kind), array, (name, out_dtype))
    wide = make(np.zeros((3, 4)), kind, dims="KJ")
    np.sum(make(for_reductions("f2"), kind), axis="I", out=wide)
    np.testing.assert_array_equal(
        read(wide), [for_reductions("f2").sum(axis=0, out=np.zeros(4))] * 3
    )


@pytest.mark.parametrize("decimals", [0, 1, -1])
def test_functions_with_an_output_compute_in_its_dtype_where_numpy_does(decimals: int) -> None:
    for dtype, out_dtype in itertools.product(TYPES, TYPES):
        array = for_reductions(dtype)
        for function in (
            lambda a, out: np.round(a, decimals, out=out),
            lambda a, out: np.clip(a, 1, 3, out=out),
            lambda a, out: np.fix(a, out=out),
            lambda a, out: np.cumsum(a, axis=0, out=out),
            lambda a, out: np.nancumprod(a, axis=1, out=out),
            lambda a, out: np.take(a, [1, 0], axis=0, out=out),
            lambda a, out: np.compress([True, True], a, axis=0, out=out),
            lambda a, out: np.concatenate([a[:1], a[1:]], out=out),
        ):

            def call(a: Any, function: Any = function) -> Any:
                out = np.zeros(a.shape, out_dtype)
                return function(a, out if isinstance(a, np.ndarray) else make(out))

            same(call, make(array), array, (function, dtype, out_dtype))


def test_reductions_without_dimensions_take_axis_0_as_numpy_does() -> None:
    array = np.array(5.0)
    names = ["all", "any", "argmax", "count_nonzero", "cumsum", "flip", "max", "mean", "median", "nansum", "ptp", "sort",
             "std", "sum", "take"]  # fmt: skip
    for axis in (0, -1, 1, (0,), (), None):
        for call in (
            *(lambda a, n=name: getattr(np, n)(a, *((0,) if n == "take" else ()), axis=axis) for name in names),
            lambda a: np.add.reduce(a, axis=axis),
            lambda a: np.maximum.reduce(a, axis=axis, initial=7.0),
            lambda a: np.add.reduce(a),
            lambda a: a.sum(axis),
        ):  # fmt: skip
            same(call, make(array), array, axis)


def test_what_are_no_axes() -> None:
    a = numbered()
    with pytest.raises(np.exceptions.AxisError, match="axis 3 is out of bounds"):
        np.add.reduce(a, axis=3)
    with pytest.raises(ValueError, match=r"axis is '0', but must be one of .*\('I', 'J', 'K'\)"):
        np.add.reduce(a, axis="0")
    with pytest.raises(ValueError, match=r"axis is 'IJ', .*name several as \('I', 'J'\)"):
        a.mean(axis="IJ")
    with pytest.raises(TypeError, match=r"axis is \['I', 'J'\], .*write \('I', 'J'\)"):
        np.sum(a, axis=["I", "J"])
    with pytest.raises(TypeError, match=r"in a tuple: mean\(\('I', 'J'\)\)"):
        a.mean("I", "J")
    with pytest.raises(ValueError, match="names a dimension twice"):
        np.add.reduce(a, axis=("I", 0))
    with pytest.raises(TypeError):
        np.add.reduce(a, axis=1.0)
    with pytest.raises(ValueError, match="not reorderable"):
        np.subtract.reduce(a, axis=("I", "J"))
    with pytest.raises(ValueError, match="zero-size array"):
        np.maximum.reduce(a[:, :0], axis="J")


# ---- Functions. ----


@pytest.mark.parametrize("kind", KINDS)
def test_all_and_any(kind: str) -> None:
    a = numbered(kind) > 3
    for function in (np.all, np.any):
        assert isinstance(function(a), np.bool_)
        assert function(a) == function(read(a))
        by_name = function(a, axis=("I", "K"))
        assert by_name.dims == ("J",)
        np.testing.assert_array_equal(read(by_name), function(read(a), axis=(0, 2)))
        assert function(a, keepdims=True).shape == (1, 1, 1)
        assert function(a, where=a) == function(read(a), where=read(a))
        out = a[:, 0, 0].copy()
        assert function(a, axis=("J", "K"), out=out) is out
    assert np.all(numbered(kind) == numbered(kind))


def test_transpose_is_a_view_with_its_dimensions() -> None:
    a = numbered(halo=(0, 1, 2))
    assert np.transpose(a).dims == ("K", "J", "I")
    turned = np.transpose(a, (1, 2, 0))
    assert (turned.dims, turned.halo) == (("J", "K", "I"), ((1, 1), (2, 2), (0, 0)))
    turned[...] = 0
    assert not np.any(a)


@pytest.mark.parametrize("kind", KINDS)
def test_copyto_pairs_dimensions_by_name(kind: str) -> None:
    target, source = numbered(kind, (4, 3, 2), dims="KJI"), numbered(kind, (2, 3), "i4")
    np.copyto(target, source)
    np.testing.assert_array_equal(read(target), np.broadcast_to(read(source).T, (4, 3, 2)))
    np.copyto(target, 7, where=source > 3)
    np.testing.assert_array_equal(read(target)[0], np.where(read(source) > 3, 7, read(source)).T)
    with pytest.raises(TypeError, match="Cannot cast"):
        np.copyto(source, target[0])
    np.copyto(source, target[0], casting="unsafe")
    np.testing.assert_array_equal(read(source), read(target)[0].T)


def test_copyto_an_array() -> None:
    array, source = np.zeros((2, 3, 4)), numbered()
    np.copyto(array, source)
    np.testing.assert_array_equal(array, read(source))
    with pytest.raises(ValueError, match=r"out is an array of shape \(2, 3, 4\)"):
        np.copyto(array, source[0])


def test_save_and_load() -> None:
    file = io.BytesIO()
    np.save(file, numbered())
    file.seek(0)
    np.testing.assert_array_equal(np.load(file), read(numbered()))


METHODS = ["all", "any", "argmax", "argmin", "max", "mean", "min", "prod", "std", "sum", "var"]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", METHODS)
def test_methods_are_numpys_functions(kind: str, name: str) -> None:
    a = numbered(kind)
    array, method = read(a), getattr(a, name)
    assert method() == getattr(array, name)()
    for found in (method("J"), method(1), method(axis=-2)):
        assert found.dims == ("I", "K")
        np.testing.assert_allclose(read(found), getattr(array, name)(1))
    assert method(axis="I", keepdims=True).shape == (1, 3, 4)
    out = method("K") * 0
    assert method("K", out=out) is out
    np.testing.assert_allclose(read(out), getattr(array, name)(2))
    with pytest.raises(ValueError, match="must be one of the dimensions"):
        method(axis="L")


def test_methods_that_are_no_reductions() -> None:
    a = numbered() / 3
    column = make([1.0, 2.0, 3.0, 4.0], dims="K")
    np.testing.assert_array_equal(read(a.clip(1, column)), read(a).clip(1, read(column)))
    np.testing.assert_array_equal(read(a.clip(max=2)), read(a).clip(max=2))
    np.testing.assert_array_equal(read(a.round(1)), read(a).round(1))
    np.testing.assert_array_equal(read((a * 1j).conj()), read(a * 1j).conj())


@pytest.mark.parametrize("kind", KINDS)
def test_functions_that_rearrange_return_views(kind: str) -> None:
    a = numbered(kind, halo=((1, 0), (0, 0), (0, 2)))
    for view, dims in [
        (np.moveaxis(a, "I", -1), ("J", "K", "I")),
        (np.flip(a, "I"), ("I", "J", "K")),
        (np.rot90(a, axes=("J", "K")), ("I", "K", "J")),
        (np.expand_dims(a, 0)[0], ("I", "J", "K")),
        (np.unstack(a, axis="J")[0], ("I", "K")),
        (np.split(a, 2, axis="K")[0], ("I", "J", "K")),
    ]:
        assert view.dims == dims
        view[...] = 0
        assert np.count_nonzero(a) < a.size
        a[...] = 1
    assert np.flip(a, "I").halo == ((0, 1), (0, 0), (0, 2))


@pytest.mark.parametrize("kind", KINDS)
def test_plain_results_are_new_memory(kind: str) -> None:
    a = numbered(kind)
    before = read(a)
    for function in (np.ravel, np.diagonal, np.unique, lambda s: np.reshape(s, (6, 4))):
        result = function(a)
        if result.flags.writeable:
            result[...] = 0
        np.testing.assert_array_equal(read(a), before)


@pytest.mark.parametrize("kind", KINDS)
def test_stack_and_concatenate_pair_by_name(kind: str) -> None:
    a, b = numbered(kind, (2, 3)), numbered(kind, (3, 2), dims="JI")
    joined = np.concatenate([a, b], axis="J")
    assert (joined.dims, joined.shape) == (("I", "J"), (2, 6))
    np.testing.assert_array_equal(read(joined), np.concatenate([read(a), read(b).T], axis=1))
    assert np.stack([a, b]).dims == ("0", "I", "J")
    assert np.stack([a, b], axis=-1).dims == ("I", "J", "0")
    assert np.stack([a, b], axis="K").dims == ("I", "J", "K")
    again = np.stack([np.stack([a, b])] * 3)
    assert again.dims == ("1", "0", "I", "J")
    np.testing.assert_array_equal(read(again)[2, 1], read(b).T)
    with pytest.raises(ValueError, match="must have .'I', 'J'. in all of them"):
        np.concatenate([a, numbered(kind, (2,))])
    with pytest.raises(ValueError, match="twice|unique|dimension"):
        np.stack([a, b], axis="J")


@pytest.mark.parametrize("kind", KINDS)
def test_comparison_with_a_text_is_numpys(kind: str) -> None:
    a = numbered(kind)
    for text in ("a", b"a"):
        assert not np.any(a == text)
        assert np.all(a != text)
        assert (a == text).dtype == bool
    with pytest.raises(TypeError):
        a < "a"


def test_functions_that_take_part_in_an_output() -> None:
    a = numbered()
    out = numbered(shape=(4, 3, 2), dims="KJI")
    assert np.round(a / 3, 1, out=out) is out
    np.testing.assert_array_equal(read(out).T, np.round(read(a) / 3, 1))
    assert np.clip(a, 0, 3, out=out) is out
    assert np.mean(a, axis="I", out=out) is out
    np.testing.assert_allclose(read(out).T, np.repeat(read(a).mean(0)[None], 2, axis=0))
    array = np.zeros((3, 4))
    assert np.median(a, axis="I", out=array) is array
    np.testing.assert_array_equal(array, np.median(read(a), axis=0))
    with pytest.raises(TypeError, match="Cannot cast"):
        np.clip(a, 0, 3, out=a.astype("i4"))
    with pytest.raises(ValueError, match="lacks 'K'"):
        np.round(a, out=a[..., 0])
    before = read(a)
    np.median(a, axis="K", overwrite_input=True)
    np.testing.assert_array_equal(read(a), before)


class NoArray:
    """Not an array in any way."""


NO_OUTPUTS = [5, 2.5, True, "out", b"out", [1], [[1.0, 2.0]], np.float64(1), NoArray(), {}, {1: 2}, range(2), (), (None, None), slice(None)]  # fmt: skip


def with_outputs() -> list[str]:
    names = []
    for name in _table.ROWS:
        function = operator.attrgetter(name)(np) if hasattr(np, name.partition(".")[0]) else len
        is_ufunc = isinstance(function, np.ufunc)
        if is_ufunc or "out" in _call.signature_of(function).parameters:
            names.append(name)
    ufuncs = [name for name, value in vars(np).items() if isinstance(value, np.ufunc)]
    names += [name for name in ufuncs if name != "isnat"]  # for dates
    return sorted(set(names))


def arguments_of(name: str, make: Callable[[Any], Any]) -> tuple[Any, ...]:
    """Arguments of a function that has `out`."""
    function = operator.attrgetter(name)(np)
    matrix = make(np.array([[2.0, 1.0], [1.0, 3.0]]))
    if isinstance(function, np.ufunc):
        is_integer = all("d" not in signature for signature in function.types)
        vectors = {"matvec": (matrix, matrix[0]), "vecmat": (matrix[0], matrix)}
        own = make(np.array([[2, 1], [1, 3]])) if is_integer else matrix
        if name == "ldexp":
            return matrix, make(np.array([[2, 1], [1, 3]]))
        return vectors.get(name, (own,) * function.nin)
    q = (0.5,) if "quantile" in name or "percentile" in name else ()
    given = {
        "choose": (make(np.array([[0, 1], [1, 0]])), [matrix, 9.0]),
        "compress": ([True, False], matrix, 0),
        "concat": ([matrix, matrix],),
        "concatenate": ([matrix, matrix],),
        "cumulative_prod": (matrix[0],),
        "cumulative_sum": (matrix[0],),
        "dot": (matrix, matrix),
        "einsum": ("ij->i", matrix),
        "linalg.multi_dot": ([matrix, matrix],),
        "outer": (matrix[0], matrix[1]),
        "stack": ([matrix, matrix],),
        "take": (matrix, [[1, 0]], 0),
        "clip": (matrix, 1, 2),
    }
    return given.get(name, (matrix, *q))


@pytest.mark.parametrize("name", with_outputs())
def test_what_is_not_an_output_is_numpys_error(name: str) -> None:
    function = operator.attrgetter(name)(np)
    arguments = arguments_of(name, make)
    for wrong in NO_OUTPUTS:
        if isinstance(wrong, tuple) and wrong == (None,) * getattr(function, "nout", 1):
            continue  # as if it was not given
        with pytest.raises((TypeError, ValueError)):
            function(*arguments, out=wrong)
    if isinstance(function, np.ufunc) and function.nout == 1:
        for wrong in NO_OUTPUTS[:-3]:
            with pytest.raises((TypeError, ValueError)):
                function(*arguments, out=(wrong,))


IGNORED = {"fft.hfft", "fft.ifft2"}
"""Functions whose `out` NumPy ignores."""


@pytest.mark.parametrize("kind", ["cpu", "synced"])
@pytest.mark.parametrize("name", with_outputs())
def test_an_output_of_any_shape_is_numpys(name: str, kind: str) -> None:
    """An array as output is refused where NumPy refuses it, never filled by repetition; only ufuncs repeat, as NumPy's do."""
    function = operator.attrgetter(name)(np)
    if isinstance(function, np.ufunc) and function.nout > 1:
        return
    plain = arguments_of(name, np.asarray)
    with np.errstate(all="ignore"):
        result = np.asarray(function(*plain))
    for shape in {
        result.shape,
        (3, *result.shape),
        (1, *result.shape),
        result.shape[1:],
        (*result.shape, 1),
        (5,),
        (),
    }:

        def call(make: Callable[[Any], Any]) -> np.ndarray:
            out = np.zeros(shape, result.dtype)
            with np.errstate(all="ignore"):
                assert function(*arguments_of(name, make), out=out) is out
            return out

        try:
            if shape != result.shape and ("cum" in name and shape == () or name in IGNORED):
                raise ValueError("NumPy crashes, or ignores it")
            expected = result if name in IGNORED else call(np.asarray)
        except (TypeError, ValueError):
            with pytest.raises((TypeError, ValueError)):
                call(lambda values: make(values, kind))
            continue
        if shape != result.shape and _table.row_of(name).rule != "plain":  # type: ignore[union-attr]
            continue  # names decide
        np.testing.assert_array_equal(call(lambda values: make(values, kind)), expected)


@pytest.mark.parametrize("kind", KINDS)
def test_an_output_by_position_may_be_a_storage_and_an_input(kind: str) -> None:
    values = np.array([[2.0, 1.0], [1.0, 3.0]])
    for call in (
        lambda a, out: np.dot(a, a, out=out),
        lambda a, out: np.matmul(a, a, out=out),
        lambda a, out: np.take(a, [[3, 2], [1, 0]], out=out),
        lambda a, out: np.einsum("ij,jk->ik", a, a, out=out),
        lambda a, out: np.outer(a[0], a[1], out=out),
        lambda a, out: np.cumsum(a, axis=0, out=out),
    ):
        for is_input in (False, True):
            a = make(values, kind, layout=(1, 0))
            out = a if is_input else make(np.zeros((2, 2)), kind, alignment_size=64)
            expected = np.zeros((2, 2))
            call(values, expected)
            assert call(a, out) is out
            np.testing.assert_array_equal(read(out), expected)


@pytest.mark.parametrize("kind", KINDS)
def test_clip_takes_the_options_of_ufuncs(kind: str) -> None:
    """Its mask and bounds are paired by name, and what the mask leaves out is not written."""
    a, lowest = numbered(kind, (3, 3), dims="IJ"), numbered(kind, (3, 3), dims="JI")
    values, bounds = read(a), read(lowest).T
    mask = np.array([[True, False, False], [True, True, False], [False, True, False]])
    where = make(mask.T, kind, dims="JI")
    out = make(np.full((2, 3, 3), 7.0), kind, dims="KIJ")
    assert np.clip(a, lowest, 8, out=out, where=where) is out
    np.testing.assert_array_equal(
        read(out), np.broadcast_to(np.where(mask, np.clip(values, bounds, 8), 7), (2, 3, 3))
    )
    made = np.clip(a, max=lowest, dtype="f4", casting="same_kind")
    assert made.dims == ("I", "J")
    np.testing.assert_array_equal(read(made), np.clip(values, max=bounds, dtype="f4"))
    np.testing.assert_array_equal(read(np.clip(a, None, None)), values)
    with pytest.raises(TypeError, match="safe"):
        np.clip(a, 1, 2, dtype="f4", casting="safe")
    for wrong in ({"a_min": 1}, {"a_max": 1}, {"a_min": 1, "a_max": 2, "max": 3}):
        with pytest.raises((TypeError, ValueError), match="clip|forbidden"):
            np.clip(a, **wrong)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("dtype", ["f8", "c8", "i4"])
def test_nan_to_num_writes_in_place_if_it_is_told_to(kind: str, dtype: str) -> None:
    values = np.array([[1.0, 2, 3], [4, 5, 6]]).astype(dtype)
    if dtype != "i4":
        values[0, ::2] = np.nan, np.inf
    storage = make(values, kind)
    view = storage[:, ::-1]
    assert np.nan_to_num(view, copy=False, nan=9) is view
    np.testing.assert_array_equal(read(storage), np.nan_to_num(values, nan=9))
    made = np.nan_to_num(storage, nan=9)
    assert not np.shares_memory(read(made), read(storage))


@pytest.mark.parametrize("kind", KINDS)
def test_broadcast_arrays_gives_new_memory_or_read_only_without_a_warning(kind: str) -> None:
    storage, row = numbered(kind, (2, 3)), numbered(kind, (3,))
    before = read(storage), read(row)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for one in np.broadcast_arrays(storage, row):
            assert one.shape == (2, 3)
            if one.flags.writeable:
                one[...] = 0
    np.testing.assert_array_equal(read(storage), before[0])
    np.testing.assert_array_equal(read(row), before[1])


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", ["cumsum", "cumprod", "nancumsum", "sort", "take", "repeat"])
def test_functions_along_an_axis_make_a_vector_of_no_dimensions(kind: str, name: str) -> None:
    storage, plain = make(2.5, kind), np.array(2.5)
    options: dict[str, Any] = {"take": {"indices": [0, 0]}, "repeat": {"repeats": 2}}.get(name, {})
    function = getattr(np, name)
    if name == "sort":
        with pytest.raises(np.exceptions.AxisError):
            function(storage)
        return
    expected = function(plain, axis=0, **options)
    found = function(storage, axis=0, **options)
    assert isinstance(found, np.ndarray)
    np.testing.assert_array_equal(found, expected)
    if name != "repeat":
        out = make(np.zeros(expected.shape), kind)
        assert function(storage, axis=0, out=out, **options) is out
        np.testing.assert_array_equal(read(out), expected)


def test_like_functions_take_no_order_and_another_shape_of_as_many_dimensions() -> None:
    a = numbered(halo=(1, 1, 0))
    assert np.zeros_like(a, shape=(2, 3, 4)).halo == a.halo
    other = np.ones_like(a, shape=(2, 5, 4), dtype="i4")
    assert (other.shape, other.dims, other.dtype) == ((2, 5, 4), a.dims, np.int32)
    assert (other.halo, other.layout) == (((1, 1), (0, 0), (0, 0)), a.layout)
    assert other.sum() == 40
    for keywords, text in (({"order": "F"}, "takes no order"), ({"shape": (3,)}, "must have 3")):
        with pytest.raises(TypeError, match=text):
            np.zeros_like(a, **keywords)


@pytest.mark.parametrize("kind", ["gpu", "synced"])
def test_functions_compute_on_the_current_side(kind: str) -> None:
    a = numbered(kind)
    a += 1
    if kind == "synced":
        a.host_to_device(force=True)
    for function in (np.mean, np.round, np.argmax, np.roll, np.ravel):
        arguments = (1,) if function is np.roll else ()
        _, side = side_of(lambda f=function, r=arguments: f(a, *r))
        assert side == "device"


def test_functions_of_arrays_of_other_types_are_not_refused_for_them() -> None:
    class Mine:
        def __array_function__(self, *_: Any) -> str:
            return "mine"

    assert np.concatenate([numbered(), Mine()]) == "mine"


def test_sequences_of_arrays_and_indices_are_numpys() -> None:
    index = np.array([[0, 1, 1], [1, 0, 1]])
    field = np.arange(6.0).reshape(2, 3)
    for call in (
        lambda i, a: np.choose(i, [0, 9]),
        lambda i, a: np.choose(i, (0, 9.5)),
        lambda i, a: np.choose(i, [a, 9]),
        lambda i, a: np.choose(i, [[[1, 2, 3], [4, 5, 6]], a]),
        lambda i, a: (
            np.choose(i, [[1, 2, 3], 9])
            if isinstance(i, np.ndarray)
            else np.choose(i, [[[1, 2, 3]], 9])
        ),
        lambda i, a: np.choose(i, np.stack([field, -field])),
        lambda i, a: np.choose(i[0], np.array([[1, 2, 3], [4, 5, 6]])),
        lambda i, a: np.choose(i[0], a),
        lambda i, a: np.select([i > 0], [1]),
        lambda i, a: np.select([i > 0, a > 2], [1, 2.5], 7),
        lambda i, a: np.select([i > 0], [a], default=-a),
        lambda i, a: np.select((i > 0, a > 1), (a, 3), default=2),
        lambda i, a: np.select([i > 0], [[[1, 2, 3], [4, 5, 6]]]),
        lambda i, a: np.average(a, axis=1, weights=np.array([1, 2, 4])),
        lambda i, a: np.average(a, axis=1, weights=[1, 2, 4]),
        lambda i, a: np.average(a, weights=np.arange(1, 7).reshape(2, 3)),
        lambda i, a: np.trapezoid(a, np.array([0, 1, 3]), axis=1),
        lambda i, a: np.split(a, i[0, 1:2], axis=1)[1],
        lambda i, a: np.array_split(a, np.array([1, 2]), axis=1)[2],
        lambda i, a: np.array_split(a, (1, 2), axis=1)[1],
        lambda i, a: np.transpose(a, np.array([1, 0])),
        lambda i, a: np.moveaxis(a, np.int64(0), np.array(1)),
        lambda i, a: np.sum(a, axis=np.array(1)),
        lambda i, a: np.mean(a, axis=np.array([0])),
        lambda i, a: np.sum(a, axis=np.array([0])),
        lambda i, a: np.quantile(a, 0.4, axis=0, weights=a + 1, method="inverted_cdf"),
    ):

        def both(given: Any, call: Any = call) -> Any:
            return call(*given)

        same(both, (make(index), make(field)), (index, field), call)
    a, i = make(field), make(index)
    turned = make(field.T, dims="JI")
    np.testing.assert_array_equal(
        read(np.select([i > 0], [a], default=turned)), np.where(index > 0, field, field)
    )
    weights = turned + 1
    np.testing.assert_array_equal(
        read(np.quantile(a, 0.4, axis="I", weights=weights, method="inverted_cdf")),
        np.quantile(field, 0.4, axis=0, weights=field + 1, method="inverted_cdf"),
    )


# ---- Where it is computed. ----

MIXED = {
    "average": lambda a, b, v: np.average(a, axis=0, weights=b),
    "choose": lambda a, b, v: np.choose(a > 1, [a, b]),
    "clip": lambda a, b, v: np.clip(a, 0, b),
    "compress": lambda a, b, v: np.compress(v > 1, a, axis=1),
    "concatenate": lambda a, b, v: np.concatenate([a, b]),
    "delete": lambda a, b, v: np.delete(a, 0, axis=0) + b[:1],
    "diff": lambda a, b, v: np.diff(a, axis=0, prepend=b),
    "digitize": lambda a, b, v: np.digitize(a, v),
    "interp": lambda a, b, v: np.interp(a, v, v),
    "isclose": lambda a, b, v: np.isclose(a, b),
    "isin": lambda a, b, v: np.isin(a, v),
    "mean": lambda a, b, v: np.mean(a, axis=0, where=b > 2),
    "nanmax": lambda a, b, v: np.nanmax(a, axis=0, where=b > 2, initial=0),
    "nansum": lambda a, b, v: np.nansum(a, axis=0, where=b > 2),
    "quantile": lambda a, b, v: np.quantile(a, v / 9, axis=0),
    "percentile": lambda a, b, v: np.percentile(a, v, axis=0),
    "searchsorted": lambda a, b, v: np.searchsorted(v, a),
    "select": lambda a, b, v: np.select([a > 1], [a], default=b),
    "stack": lambda a, b, v: np.stack([a, b]),
    "std": lambda a, b, v: np.std(a, axis=0, where=b >= 0),
    "sum": lambda a, b, v: np.sum(a, axis=0, where=b > 2),
    "take": lambda a, b, v: np.take(a, (v % 2).astype(int), axis=0),
    "trapezoid": lambda a, b, v: np.trapezoid(a, b, axis=0),
    "weights": lambda a, b, v: np.quantile(a, 0.3, axis=0, weights=b, method="inverted_cdf"),
    "where": lambda a, b, v: np.where(a > 1, a, b),
}


@pytest.mark.parametrize("managed", ["synced", "managed"])
@pytest.mark.parametrize("name", MIXED)
def test_arrays_of_two_types_give_the_managed_one_on_the_side_that_computes(
    name: str, managed: str
) -> None:
    call = MIXED[name]
    a, b, v = np.arange(6.0).reshape(2, 3), np.arange(6.0).reshape(2, 3)[::-1], np.arange(3.0)
    expected = call(a, b, v)
    for kinds in itertools.product(["cpu", managed, "gpu"], repeat=3):
        for current in ("host", "device"):
            storages = [make(x, k, dims=d) for x, k, d in zip((a, b, v), kinds, ("IJ", "IJ", "J"))]
            for storage, kind in zip(storages, kinds):
                if kind == managed and current == "device":
                    storage[...] = gridbuf.storage.storage(
                        read(storage), device="gpu", managed=None, dims=storage.dims
                    )
            try:
                found = call(*storages)
            except TypeError as error:  # memory of host and device without a managed one
                assert "cannot reach" in str(error) and {"cpu", "gpu"} <= set(kinds)
                continue
            np.testing.assert_allclose(read(found), expected)
            if kinds[0] == managed:
                assert type(found) is type(storages[0])
            assert type(found) in [type(storage) for storage in storages]


CLEAN, HOST, DEVICE = SyncState.SYNC_CLEAN, SyncState.SYNC_HOST_DIRTY, SyncState.SYNC_DEVICE_DIRTY


def in_state(state: int, shape: tuple[int, ...] = (2, 3, 4)) -> Any:
    storage = numbered("synced", shape)
    storage.synchronize()
    if state == HOST:
        storage.set_host_modified()
    if state == DEVICE:
        storage.set_device_modified()
    assert storage.sync_state.state == state
    return storage


def side_of(call: Callable[[], Any]) -> Any:
    """What `call` gives, and whether it ran a kernel."""
    before = testing.calls("launch")
    result = call()
    return result, "device" if testing.calls("launch") > before else "host"


@pytest.mark.parametrize(
    ("states", "side"),
    [
        ((HOST, HOST), "host"),
        ((HOST, CLEAN), "device"),
        ((CLEAN, CLEAN), "device"),
        ((DEVICE, HOST), "device"),
    ],
)
def test_software_managed_computes_on_the_device_unless_all_are_on_the_host_only(
    states: Any, side: str
) -> None:
    a, b = (in_state(state) for state in states)
    result, found = side_of(lambda: a + b)
    assert found == side
    assert result.sync_state.state == (HOST if side == "host" else DEVICE)
    np.testing.assert_array_equal(read(result), 2 * read(a))


def test_software_managed_with_numbers_and_host_arrays() -> None:
    assert side_of(lambda: in_state(HOST) * 2)[1] == "host"
    assert side_of(lambda: in_state(CLEAN) * 2)[1] == "device"
    for other in (np.ones((2, 3, 4)), numbered()):
        assert side_of(lambda other=other: in_state(HOST) + other)[1] == "host"
        result, side = side_of(lambda other=other: in_state(DEVICE) + other)
        assert (side, type(result).__name__) == ("device", "SoftwareManagedGPUStorage")
        np.testing.assert_array_equal(
            read(result), read(numbered()) + read(make(np.asarray(other)))
        )
    target = in_state(CLEAN)
    assert side_of(lambda: np.add(numbered(), 1, out=target))[1] == "host"
    assert target.sync_state.state == HOST


def test_an_output_that_one_side_cannot_reach_decides() -> None:
    array = np.zeros((2, 3, 4))
    assert side_of(lambda: np.add(in_state(CLEAN), 1, out=array))[1] == "host"
    np.testing.assert_array_equal(array, read(numbered()) + 1)
    assert side_of(lambda: np.add(in_state(HOST), 1, out=numbered("gpu")))[1] == "device"
    with pytest.raises(TypeError, match="host, which cannot reach the GPUStorage"):
        np.add(in_state(CLEAN), numbered("gpu"), out=array)


def test_cuda_managed_computes_on_the_device_if_an_operand_offers_a_device_interface() -> None:
    managed = numbered("managed")
    assert side_of(lambda: managed + 1)[1] == "device"
    assert side_of(lambda: np.add(numbered(), 1, out=managed))[1] == "host"
    np.testing.assert_array_equal(read(managed), read(numbered()) + 1)
    result, side = side_of(lambda: managed + in_state(HOST))
    assert (side, type(result).__name__) == ("device", "CUDAManagedGPUStorage")
    result, side = side_of(lambda: in_state(HOST) + managed)
    assert (side, type(result).__name__) == ("device", "SoftwareManagedGPUStorage")


def test_host_and_device_storages_do_not_mix_by_themselves() -> None:
    for call in (
        lambda: numbered() + numbered("gpu"),
        lambda: numbered("gpu") + numbered(),
        lambda: numbered("gpu") + np.ones((2, 3, 4)),
        lambda: np.add(numbered("gpu"), 1, out=np.ones((2, 3, 4))),
        lambda: np.add(numbered("gpu"), 1, where=np.ones((2, 3, 4), bool)),
    ):
        with pytest.raises(
            TypeError, match=r"cannot reach the \w+; copy it: gridbuf\.storage\.storage"
        ):
            call()
    result = in_state(HOST) + numbered("gpu")
    assert type(result).__name__ == "SoftwareManagedGPUStorage"
    np.testing.assert_array_equal(read(result), 2 * read(numbered()))


def test_array_priority() -> None:
    assert {kind: numbered(kind).__array_priority__ for kind in KINDS} == {
        "cpu": 10, "gpu": 10, "synced": 11, "managed": 11,
    }  # fmt: skip


@pytest.mark.parametrize("kind", ["gpu", "synced", "managed"])
def test_a_floating_point_error_of_a_kernel_reaches_the_caller(kind: str) -> None:
    a = numbered(kind)
    with np.errstate(divide="raise"), pytest.raises(FloatingPointError):
        np.divide(a, 0)
    with np.errstate(divide="ignore"):
        assert np.all(np.isinf(a / 0))


def live_blocks() -> int:
    gc.collect()
    testing.synchronize()
    return testing.statistics()["live_blocks"]


def test_a_failed_launch_leaves_inputs_and_new_outputs_alone() -> None:
    a, b = in_state(HOST), in_state(CLEAN)
    live = live_blocks()
    with testing.failing("launch"), pytest.raises(RuntimeError, match="injected"):
        a + b
    assert live_blocks() == live
    np.testing.assert_array_equal(read(a), read(numbered()))
    np.testing.assert_array_equal(read(a + b), 2 * read(numbered()))


# ---- A refused call touches nothing. ----


@pytest.mark.parametrize(
    "call",
    [
        lambda a, out: np.add(a, 1.5, out=out),  # float64 into int32
        lambda a, out: np.add(a, make(np.ones(5)), out=out),
        lambda a, out: np.add(a, np.ones((7, 7)), out=out),
        lambda a, out: np.add.reduce(a, axis="I", out=out[:, 0]),
        lambda a, out: np.add.reduce(a, axis="I", dtype="nonsense", out=out),
        lambda a, out: np.subtract.reduce(a, axis=("I", "J"), out=out),
        lambda a, out: np.copyto(out, 1.5),
        lambda a, out: np.add(a, "b", out=out),
        lambda a, out: np.add(a, 1, out=out, dtype="nonsense"),
    ],
)
def test_a_refused_call_marks_nothing(call: Callable[..., Any]) -> None:
    a, out = numbered(dtype="i4"), numbered("synced", dtype="i4")
    out.synchronize()
    with pytest.raises((TypeError, ValueError)):
        call(a, out)
    assert out.sync_state.state == CLEAN


# ---- Memory of others. ----


class Provider:
    """An object with a data interface over an array, which records the calls."""

    def __init__(self, array: np.ndarray, dims: tuple[str, ...] | None = None) -> None:
        self.array = array
        self.calls: list[str] = []
        self.dims_of_entry = dims

    @property
    def __gt_data_interface__(self) -> dict[Any, Any]:
        entry: dict[str, Any] = dict(self.array.__array_interface__)
        entry |= {
            name: lambda name=name: self.calls.append(name)
            for name in ("acquire", "touch", "release")
        }
        if self.dims_of_entry is not None:
            entry["dims"] = self.dims_of_entry
        return {None: entry}


def test_foreign_memory_is_acquired_touched_if_written_and_released() -> None:
    a = numbered(shape=(2, 3))
    provider = Provider(np.arange(6.0).reshape(3, 2), ("J", "I"))
    result = a + provider
    np.testing.assert_array_equal(read(result), read(a) + provider.array.T)
    assert provider.calls == ["acquire", "release"]
    provider.calls.clear()
    assert np.add(a, 1, out=provider) is provider
    np.testing.assert_array_equal(provider.array.T, read(a) + 1)
    assert provider.calls == ["acquire", "touch", "release"]


def test_foreign_memory_without_names_joins_by_its_shape() -> None:
    a, provider = numbered(shape=(2, 3)), Provider(np.arange(6.0).reshape(2, 3))
    np.testing.assert_array_equal(read(a * provider), read(a) * provider.array)
    with pytest.raises(ValueError, match="without names"):
        a + Provider(np.zeros((3, 2)))


@pytest.mark.parametrize("written", [False, True])
def test_foreign_memory_is_released_if_the_function_raises(written: bool) -> None:
    a, provider = numbered(shape=(2, 3)), Provider(np.zeros((2, 3)), ("I", "J"))
    caught = []
    try:
        with np.errstate(divide="raise"):
            np.divide(a, 0, out=provider) if written else np.divide(a, provider)
    except FloatingPointError as error:
        caught.append(error)  # Its traceback lives on.
    assert caught
    assert provider.calls == (
        ["acquire", "touch", "release"] if written else ["acquire", "release"]
    )


class DeviceProvider(Provider):
    """The same with an entry for memory of a device."""

    def __init__(self, buffer: gridbuf.Buffer) -> None:
        super().__init__(np.zeros(0))
        self.buffer = buffer

    @property
    def __gt_data_interface__(self) -> dict[Any, Any]:
        hooks = {
            name: lambda name=name: self.calls.append(name)
            for name in ("acquire", "touch", "release")
        }
        return {"gpu": self.buffer.__gt_data_interface__["gpu"] | hooks}


@pytest.mark.parametrize("kind", ["gpu", "synced", "managed"])
def test_foreign_memory_of_a_device_is_acquired_touched_if_written_and_released(kind: str) -> None:
    values = np.arange(6.0).reshape(3, 2)
    provider = DeviceProvider(gridbuf.from_array(values, dims="JI").base.copy(memory="device"))
    a = numbered(kind, (2, 3))
    result, side = side_of(lambda: a + provider)
    assert side == "device"
    np.testing.assert_array_equal(read(result), read(a) + values.T)
    assert provider.calls == ["acquire", "release"]
    provider.calls.clear()
    assert side_of(lambda: np.add(a, 1, out=provider))[1] == "device"
    assert provider.calls == ["acquire", "touch", "release"]
    np.testing.assert_array_equal(read(provider.buffer), (read(a) + 1).T)
    with pytest.raises(TypeError, match="host, which cannot reach the DeviceProvider"):
        numbered(shape=(2, 3)) + provider


def test_exceptions_of_foreign_objects_reach_the_caller() -> None:
    class Broken:
        @property
        def __gt_data_interface__(self) -> Any:
            raise RuntimeError("out of order")

    with pytest.raises(RuntimeError, match="out of order"):
        numbered() + Broken()

    class BrokenHook(Provider):
        @property
        def __gt_data_interface__(self) -> dict[Any, Any]:
            entries = super().__gt_data_interface__
            entries[None]["touch"] = lambda: 1 / 0
            return entries

    provider = BrokenHook(np.zeros((2, 3)), ("I", "J"))
    with pytest.raises(ZeroDivisionError):
        np.add(numbered(shape=(2, 3)), 1, out=provider)
    assert provider.calls == ["acquire", "release"]


def test_masked_arrays_are_refused_and_not_stripped() -> None:
    masked = np.ma.masked_array([1.0, 2.0], mask=[True, False])
    with pytest.raises((TypeError, ValueError, BufferError), match="mask"):
        numbered(shape=(2,)) + masked


def test_device_memory_of_others() -> None:
    buffer = gridbuf.from_array(np.arange(6.0).reshape(2, 3), device=None)
    on_device = gridbuf.as_buffer(buffer).copy(memory="device")
    a = numbered("gpu", (2, 3))
    np.testing.assert_array_equal(read(a + on_device), read(a) + np.arange(6.0).reshape(2, 3))
    np.testing.assert_array_equal(
        read(in_state(HOST, (2, 3)) * on_device), read(a) * np.arange(6.0).reshape(2, 3)
    )
    with pytest.raises(TypeError, match="host, which cannot reach the Buffer"):
        numbered(shape=(2, 3)) + on_device


# ---- Views, zeros, and no dimensions. ----


@pytest.mark.parametrize("kind", KINDS)
def test_views_are_computed_with_as_they_are_seen(kind: str) -> None:
    a = numbered(kind, (4, 5, 6), layout=(1, 2, 0), alignment_size=64)
    values = read(a)
    np.testing.assert_array_equal(
        read(a[1:3, ::-1] + a[2:0:-1, :, 2:3][..., 0]),
        values[1:3, ::-1] + values[2:0:-1, :, 2][:, :, None],
    )
    a[::2] *= -1
    values[::2] *= -1
    np.testing.assert_array_equal(read(a), values)
    np.testing.assert_array_equal(read(a.domain_view + a.T), 2 * values)


@pytest.mark.parametrize("kind", KINDS)
def test_without_elements_and_without_dimensions(kind: str) -> None:
    empty = numbered(kind, (0, 3))
    assert (empty + 1).shape == (0, 3)
    assert np.add.reduce(empty, axis="I").shape == (3,)
    one = make(np.array(2.0), kind)
    result = one * 3
    assert (type(result), result.shape) == (type(one), ())
    assert read(result) == 6
    np.testing.assert_array_equal(read(one + numbered(kind)), read(numbered()) + 2)


def test_a_read_only_output_is_refused() -> None:
    array = np.zeros(3)
    array.flags.writeable = False
    storage = gridbuf.storage.as_storage(array)
    with pytest.raises(ValueError, match="read-only"):
        np.add(storage, 1, out=storage)


# ---- Real devices. ----

VALUES = np.arange(1.0, 25.0).reshape(2, 3, 4)
MASK = VALUES % 3 == 0


@pytest.mark.parametrize("mask", [True, MASK, MASK[:, :1]], ids=["all", "some", "repeated"])
@pytest.mark.parametrize("ufunc", [np.add, np.sqrt, np.divmod, np.less])
def test_what_cupy_is_asked_gives_what_the_ufunc_gives(ufunc: np.ufunc, mask: Any) -> None:
    """With NumPy in CuPy's place, whose interface it is."""
    arrays = [VALUES, VALUES[:1]][: ufunc.nin]
    expected = ufunc(
        *arrays, out=tuple(np.full((2, 3, 4), 0.0) for _ in range(ufunc.nout)), where=mask
    )
    targets = [np.zeros((2, 3, 4)) for _ in range(ufunc.nout)]
    _cupy.call(np, ufunc, arrays, targets, mask, {"casting": "same_kind"})
    np.testing.assert_array_equal(targets, expected if ufunc.nout > 1 else (expected,))


@pytest.mark.parametrize("mask", [True, MASK])
@pytest.mark.parametrize("initial", [None, 2])
@pytest.mark.parametrize("axes", [(0,), (0, 2), (0, 1, 2)])
@pytest.mark.parametrize("ufunc", list(_cupy._REDUCTIONS))
def test_what_cupy_is_asked_gives_what_reduce_gives(
    ufunc: np.ufunc, axes: tuple[int, ...], initial: Any, mask: Any
) -> None:
    for dtype, keepdims in ((None, True), ("f4", False)):
        logical = ufunc in (np.logical_and, np.logical_or)
        options: dict[str, Any] = {"dtype": None if logical else dtype, "keepdims": keepdims}
        if initial is not None:
            options["initial"] = initial
        if initial is None and mask is not True and ufunc.identity is None:
            with pytest.raises(ValueError, match="does not have an identity"):
                _cupy.reduce(np, ufunc, VALUES, mask, axes, options)
            continue
        expected = ufunc.reduce(VALUES, axis=axes, where=mask, **options)
        found = _cupy.reduce(np, ufunc, VALUES, mask, axes, options)
        np.testing.assert_allclose(found, expected)
        assert np.asarray(found).dtype == np.asarray(expected).dtype
        for own, out_dtype in itertools.product(["f2", "i4", "f8"], ["f8", "f4", "i8", "?"]):
            values, out = VALUES.astype(own), np.zeros(np.shape(expected), out_dtype)
            with np.errstate(all="ignore"):
                ufunc.reduce(values, axis=axes, where=mask, out=out, **options)
                room = (out.shape, out.dtype)
                found = np.asarray(_cupy.reduce(np, ufunc, values, mask, axes, options, room))
            np.testing.assert_allclose(found, out)
            assert found.dtype == out.dtype


def test_what_cupy_does_not_have_is_a_type_error() -> None:
    with pytest.raises(TypeError, match=r"the option signature.*device=None"):
        _cupy.call(np, np.add, [VALUES, 1], [VALUES.copy()], True, {"signature": "dd->d"})
    with pytest.raises(TypeError, match=r"numpy\.hypot\.reduce is asked of CuPy"):
        _cupy.reduce(np, np.hypot, VALUES, True, (0,), {"dtype": None, "keepdims": False})


def on_real_device() -> Any:
    """A software-managed storage on a CUDA device; skips, saying so, where there is none."""
    try:
        return numbered("synced")
    except gridbuf.DeviceUnavailableError as error:
        pytest.skip(f"no CUDA device, so arithmetic on one is untested here: {error}")


def test_cupy_computes_on_a_real_device() -> None:
    """Written without a GPU, and not verified on one: CuPy's ufuncs take the arrays of `_read_array`."""
    pytest.importorskip("cupy", reason="CuPy is not installed: its arithmetic is untested here")
    with testing.emulated_device(False):
        a = on_real_device()
        result = a + numbered("synced", (4,), dims="K")
        assert result.sync_state.state == DEVICE
        np.testing.assert_array_equal(read(result), read(a) + np.arange(1.0, 5.0))
        assert np.add.reduce(a, axis=None) == 300


def test_without_cupy_arithmetic_on_a_real_device_is_unavailable() -> None:
    """Written without a GPU, and not verified on one."""
    if importlib.util.find_spec("cupy") is not None:
        pytest.skip("CuPy is installed: that it is missing cannot be tested here")
    with testing.emulated_device(False):
        a = on_real_device()
        a.synchronize()
        with pytest.raises(gridbuf.DeviceUnavailableError, match="CuPy"):
            a + 1
        assert a.sync_state.state == CLEAN
