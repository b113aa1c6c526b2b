"""NumPy's functions on storages against NumPy: every row of the table, on random storages.

All extents of a storage are different. So the shape of NumPy's result says which dimension of the storage each of its axes is, and
with that which names the result must have.
"""

from __future__ import annotations

import inspect
import io
import operator
import warnings
from collections.abc import Iterator
from typing import Any

import gridbuf.storage
import numpy as np
import pytest
from foreign import KINDS, emulated
from gridbuf.storage import _table
from hypothesis import given, settings
from hypothesis import strategies as st


@pytest.fixture(autouse=True, scope="module")
def _device() -> Iterator[None]:
    with emulated():
        yield


CALLS = """
    abs(a) clip(a, 1, b) clip(a, min=b) clip(a, b, 3) round(a / 3, 1) around(a) where(a > b, a, b) where(a > 2, a, 0) angle(a)
    choose(a > b, [a, b]) digitize(a, [1, 2]) fix(a / 3) i0(a) imag(a) real(a) interp(a, v, v) isclose(a, b)
    iscomplex(a) isreal(a) isin(a, [1, 2]) isneginf(a) isposinf(a) nan_to_num(a) real_if_close(a) searchsorted([1, 2], a)
    select([a > 2, b > 2], [a, b], 0) sinc(a)
    all(a, axis=axis) any(a > 2) any(a, axis=axes, keepdims=True) amax(a, axis=axis) amin(a) max(a, axis=axes) min(a, axis=axis)
    sum(a) sum(a, axis=axis) sum(a, axis=axes, keepdims=True) sum(a, axis=axis, where=b > 2) prod(a, axis=axis) ptp(a, axis=axis)
    mean(a) mean(a, axis=axes) mean(a, axis=axis, keepdims=True) mean(a, axis=axis, where=b < 9) std(a, axis=axis, ddof=1)
    std(a, axis=axis) var(a) var(a, axis=axis, correction=1) argmax(a) argmax(a, axis=axis) argmin(a, axis=axis, keepdims=True)
    count_nonzero(a, axis=axis) count_nonzero(a) average(a, axis=axis) average(a, axis=axis, weights=b + 9)
    median(a, axis=axis) percentile(a, 30, axis=axis) percentile(a, [30, 50], axis=axis) quantile(a, 0.3) quantile(a, [.1, .5], axis=axes)
    nanargmax(a, axis=axis) nanargmin(a) nanmax(a, axis=axis) nanmin(a) nanmean(a, axis=axes) nanmedian(a, axis=axis)
    nanpercentile(a, 30, axis=axis) nanprod(a, axis=axis) nanquantile(a, .3, axis=axis) nanstd(a, axis=axis) nansum(a, axis=axis)
    nanvar(a, axis=axis) trapezoid(a, axis=axis) trapezoid(a, b, axis=axis) linalg.norm(a, axis=axis) linalg.vector_norm(a, axis=axes)
    linalg.vector_norm(a)
    gradient(a) gradient(a, axis=axis) pad(a, 1) pad(a, 2, mode="edge") roll(a, 2) roll(a, 1, axis=axis) roll(a, (1, 2), axis=axes)
    tile(a, 2) tril(a) triu(a, 1) unwrap(a, axis=axis)
    argsort(a, axis=axis) argsort(a, axis=None) compress([True, False], a, axis=axis) cumprod(a, axis=axis)
    cumsum(a) cumsum(a, axis=axis) cumulative_prod(a, axis=axis) cumulative_sum(a, axis=axis, include_initial=True)
    delete(a, 0, axis=axis) diff(a, axis=axis) diff(a, 2) diff(a, axis=axis, prepend=b) insert(a, 1, 7, axis=axis) nancumprod(a, axis=axis)
    nancumsum(a, axis=axis) argpartition(v, 1) partition(v, 1) repeat(a, 2, axis=axis) repeat(a, 2) sort(a, axis=axis) sort(a) take(a, [1, 0], axis=axis)
    take(a, 1, axis=axis) take(a, [1, 0]) take(a, a.astype(int) % 2) take_along_axis(a, argsort(b, axis=axis), axis=axis)
    expand_dims(a, 0) expand_dims(a, (0, -1)) flip(a) flip(a, axis=axis) flip(a, axis=axes) fliplr(a) flipud(a) linalg.matrix_transpose(a)
    matrix_transpose(a) moveaxis(a, axis, -1) moveaxis(a, axes, (0, 1)) permute_dims(a, range(a.ndim)[::-1]) rollaxis(a, 1) rot90(a)
    rot90(a, 3) squeeze(a[:1]) squeeze(sum(a, axis=axis, keepdims=True), axis=axis) swapaxes(a, axis, 0) transpose(a)
    append(a, b) append(a, b, axis=axis) hstack([a, a]) vstack([a, a]) vstack([v, v]) hstack((v, v)) dstack([a, a]) column_stack([a, a])
    column_stack([v, v]) atleast_1d(a) atleast_2d(v) atleast_3d(v) vsplit(a, [1]) hsplit(a, [1]) dsplit(a, [1]) hsplit(v, 3)
    apply_along_axis(sum, axis, a) apply_over_axes(sum, a, axes) block([[m, m]]) diagflat(v) ediff1d(a) histogram2d(v, v, 2)
    histogram_bin_edges(a, 3) histogramdd(m, 2) lexsort((v, v)) resize(a, (2, 2)) trim_zeros(v)
    concat([a, b], axis=axis) concatenate((a, b, a), axis=axis) concatenate([a, b], axis=None) stack([a, b]) stack([a, b], axis=-1) stack([a, b], axis=1)
    array_split(a, 2, axis=axis) split(a, [1], axis=axis) unstack(a, axis=axis)
    allclose(a, b) allclose(a, a + 0) array_equal(a, b) array_equal(a, a.copy()) array_equiv(a, b) array_equal(a, sum(a, axis=axis))
    astype(a, "f4") copy(a) empty_like(a) full_like(a, 3) full_like(a, 3, dtype="i2") ones_like(a) zeros_like(a, dtype="?")
    can_cast(a.dtype, "f8") common_type(a) iscomplexobj(a) isrealobj(a) ndim(a) result_type(a, "f4") shape(a) size(a) size(a, axis)
    array2string(a) array_repr(a) array_str(a) may_share_memory(a, b) shares_memory(a, a[:1])
    argwhere(a > 2) bincount(v) broadcast_arrays(a, a) broadcast_to(a, (2, *a.shape)) convolve(v, [1, 2])
    corrcoef(v, v) correlate(v, [1, 2]) cov(m) cross(v, v) diag(a) diagonal(a) dot(m, v)
    einsum("...->...", a) extract(a > 2, a) flatnonzero(a > 2) histogram(a, 3) inner(a, a) intersect1d(a, b) kron(a, a)
    lib.stride_tricks.sliding_window_view(a, 2, axis=axis) nonzero(a) where(a) outer(a, a) polyfit(v, v, 1) polyval([1, 2], a)
    ravel(a) reshape(a, -1) setdiff1d(a, b) setxor1d(a, b) tensordot(m, m) trace(a) union1d(a, b) unique(a) unique_all(a) unique_counts(a)
    unique_inverse(a) unique_values(a) vdot(a, b) vecdot(a, b) matmul(a, matrix_transpose(a)) matvec(m, v)
    vecmat(v, m) meshgrid(v, v)
    fft.fft(a) fft.fft2(a) fft.fftn(a) fft.fftshift(a) fft.hfft(a) fft.ifft(a) fft.ifft2(a) fft.ifftn(a) fft.ifftshift(a) fft.ihfft(a) fft.irfft(a)
    fft.irfftn(a) fft.rfft(a) fft.rfftn(a)
    linalg.cholesky(m) linalg.cond(m) linalg.cross(v, v) linalg.det(m)
    linalg.diagonal(a) linalg.eig(m) linalg.eigh(m)
    linalg.eigvals(m) linalg.eigvalsh(m) linalg.inv(m)
    linalg.lstsq(m, v) linalg.matmul(a, matrix_transpose(a)) linalg.matrix_norm(a) linalg.matrix_power(m, 2)
    linalg.matrix_rank(a) linalg.outer(v, v) linalg.pinv(a) linalg.qr(a) linalg.slogdet(m)
    linalg.solve(m, v) linalg.svd(a) linalg.svdvals(a) linalg.tensordot(m, m) linalg.trace(a) linalg.vecdot(a, b)
"""


def split(text: str) -> Iterator[str]:
    """The calls, which spaces separate outside of parentheses."""
    call = ""
    for word in text.split():
        call = f"{call} {word}".strip()
        if call.count("(") == call.count(")"):
            yield call
            call = ""


def function_of(call: str) -> str:
    return call.partition("(")[0]


UFUNCS = {
    name: f"{name}({'a' if value.nin == 1 else 'a, b'})"
    for name, value in vars(np).items()
    if isinstance(value, np.ufunc) and value.signature is None
}
ALL_CALLS = [*split(CALLS), *UFUNCS.values()]
NAMESPACE = {name: getattr(np, name) for name in dir(np) if not name.startswith("_")}
EXTENTS = (3, 4, 5, 7)


def read(storage: Any) -> np.ndarray:
    """A copy of the elements, whatever memory they are in."""
    return np.array(gridbuf.storage.storage(storage, device=None))


@st.composite
def fields(draw: st.DrawFn) -> dict[str, Any]:
    """Two storages with the same dimensions in different orders, a square matrix and a vector, and axes."""
    ndim = draw(st.integers(2, 4))
    names = draw(st.permutations(["I", "J", "K", "2"]))[:ndim]
    extents = dict(zip(names, draw(st.permutations(EXTENTS))))
    halo = {name: draw(st.integers(0, 1)) for name in names}
    kind = draw(st.sampled_from(sorted(KINDS)))
    dtype = draw(st.sampled_from(["f8", "f4", "i4", "u1", "?", "c16"]))

    def field(order: list[str], seed: int) -> Any:
        shape = tuple(extents[name] for name in order)
        values = np.random.default_rng(seed).integers(0, 9, shape).astype(dtype)
        return gridbuf.storage.storage(
            values,
            dims=order,
            halo=[halo[name] for name in order],
            layout=draw(st.permutations(range(ndim))),
            alignment_size=draw(st.sampled_from([1, 64])),
            **KINDS[kind],
        )

    matrix = np.array([[4, 1, 0], [1, 5, 2], [0, 2, 6]])
    picked = draw(st.permutations(names))[:2]
    return {
        "a": field(names, draw(st.integers(0, 99))),
        "b": field(draw(st.permutations(names)), draw(st.integers(0, 99))),
        "m": gridbuf.storage.storage(matrix.astype("f8"), dims="JI", **KINDS[kind]),
        "v": gridbuf.storage.storage(np.arange(3), dims="K", **KINDS[kind]),
        "axis": picked[0],
        "axes": tuple(picked),
        "kind": kind,
    }


def plain(given: dict[str, Any], rule: str) -> dict[str, Any]:
    """The same for NumPy: the second array in the order of the first where dimensions are paired, and axes by number."""
    names = list(given["a"].dims)
    arrays = {name: read(given[name]) for name in "abmv"}
    if rule != "plain":
        order = [given["b"].dims.index(name) for name in names]
        arrays["b"] = arrays["b"].transpose(order)
    axes = tuple(names.index(name) for name in given["axes"])
    return {**arrays, "axis": axes[0], "axes": axes}


def check(found: Any, expected: Any, first: Any, rule: str, has_values: bool) -> None:
    if isinstance(expected, (tuple, list)):
        assert isinstance(found, type(expected)) and len(found) == len(expected)
        for one, value in zip(found, expected):
            check(one, value, first, rule, has_values)
        return
    if not isinstance(expected, (np.ndarray, np.generic)):
        assert found == expected
        return
    assert found.dtype == expected.dtype
    assert found.shape == expected.shape
    if isinstance(found, gridbuf.storage.Storage):
        assert type(found) is type(first)
        check_names(found, first, rule)
        found = read(found)
    else:
        assert isinstance(found, (np.ndarray, np.generic))
    if has_values:
        np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-5)


def check_names(found: Any, first: Any, rule: str) -> None:
    by_extent = dict(zip(first.shape, first.dims))
    if rule in ("keeps", "along", "joins", "parts") and found.ndim == first.ndim:
        assert found.dims == first.dims
    elif first.size > 9:  # not the matrix
        for name, extent in zip(found.dims, found.shape):
            assert name == by_extent.get(extent, name)
            assert extent in by_extent or extent < 3
    if rule == "parts":
        return  # views, whose halo is that of their points
    for name, extent, width in zip(found.dims, found.shape, found.halo):
        if name in first.dims and first.shape[first.dims.index(name)] == extent:
            assert width == first.halo[first.dims.index(name)]
        else:
            assert width == (0, 0)


@pytest.mark.parametrize("call", ALL_CALLS)
@settings(max_examples=8)
@given(given_=fields())
def test_a_function_has_numpys_values_and_keeps_names(call: str, given_: dict[str, Any]) -> None:
    row = _table.row_of(function_of(call))
    assert row is not None
    if row.rule == "host" and given_["kind"] == "gpu":
        with pytest.raises(TypeError, match="no host buffer"):
            eval(call, NAMESPACE | given_)
        return
    before = read(given_["a"])
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        try:
            expected = eval(call, NAMESPACE | plain(given_, row.rule))
        except (TypeError, ValueError, IndexError, np.linalg.LinAlgError) as error:
            with pytest.raises((TypeError, ValueError, IndexError, type(error))):
                eval(call, NAMESPACE | given_)
            return
        found = eval(call, NAMESPACE | given_)
    first = given_["v" if "(v" in call else "a"]
    check(found, expected, first, row.rule, function_of(call) != "empty_like")
    np.testing.assert_array_equal(read(given_["a"]), before)


def test_every_row_is_called() -> None:
    called = {function_of(call) for call in ALL_CALLS}
    writes = {name for name, row in _table.ROWS.items() if row.rule in ("writes", "no array")}
    saves = {"save", "savetxt", "savez", "savez_compressed"}
    known = {name for name in _table.ROWS if hasattr(operator.attrgetter(name)(np), "__call__")}
    assert known - called - writes - saves == set()


def array_api() -> list[str]:
    """The functions of the array API 2024.12, by NumPy's names."""
    strict = pytest.importorskip("array_api_strict")
    with strict.ArrayAPIStrictFlags(api_version="2024.12"):
        main = [name for name in strict.__all__ if hasattr(np, name)]
        names = [name for name in main if callable(getattr(strict, name)) and name[0] != "_"]
        names = [
            name
            for name in names
            if not isinstance(getattr(np, name), type) or name in ("finfo", "iinfo")
        ]
        for extension in ("linalg", "fft"):
            module, numpys = getattr(strict, extension), getattr(np, extension)
            names += [
                f"{extension}.{name}"
                for name in vars(module)
                if callable(getattr(numpys, name, None)) and name[0] != "_"
            ]
    return names


def test_the_array_api_is_in_the_table() -> None:
    names = array_api()
    assert [name for name in names if _table.row_of(name) is None] == []
    called = {function_of(call) for call in ALL_CALLS}
    assert len(called.intersection(names)) >= 120


# ---- What is refused. ----


def required(function: Any) -> int:
    """The number of arguments that a function must have."""
    if isinstance(getattr(function, "__self__", None), np.ufunc):
        return 1 if function.__name__ == "accumulate" else 2
    kinds = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    parameters = inspect.signature(function).parameters.values()
    return max(1, sum(p.kind in kinds and p.default is p.empty for p in parameters))


def works(function: Any, array: np.ndarray) -> bool:
    try:
        function(array)
    except (TypeError, ValueError):
        return False
    return True


def refused_functions() -> list[str]:
    """NumPy's functions that have no row."""
    dispatcher = type(np.sum)
    return [
        name
        for name, value in vars(np).items()
        if isinstance(value, dispatcher) and name[0] != "_" and _table.row_of(name) is None
    ]


@pytest.mark.parametrize("name", [*refused_functions(), *_table.REFUSED])
def test_a_replacement_can_be_typed(name: str) -> None:
    storage = gridbuf.storage.ones((4, 4, 4)) * 2
    function = operator.attrgetter(name)(np)
    indices = np.zeros((1, 4, 4), int)
    arguments = [storage] * required(function)
    with pytest.raises(TypeError, match=rf"storages do not have numpy\.\S*{name}; use ") as caught:
        function(*arguments)
    message = str(caught.value)
    assert len(message) <= 200
    code = message.partition("; use ")[2].partition(", or to_cupy()")[0]
    namespace = {"numpy": np, "storage": storage, "indices": indices}
    if name in _table.REFUSED or required(function) == 1 and works(function, storage.to_numpy()):
        eval(code, namespace)
    else:  # with the other arguments
        assert code == f"numpy.{name}(storage.to_numpy())"


def test_save_and_load_of_several(tmp_path: Any) -> None:
    field = gridbuf.storage.ones((3, 4))
    np.savez(tmp_path / "a.npz", u=field, v=field[0])
    with np.load(tmp_path / "a.npz") as loaded:
        assert loaded["u"].shape == (3, 4)
        assert loaded["v"].shape == (4,)
    np.savez_compressed(tmp_path / "b.npz", field)
    text = io.StringIO()
    np.savetxt(text, field)
    assert text.getvalue().splitlines()[0] == " ".join(["1.000000000000000000e+00"] * 4)
