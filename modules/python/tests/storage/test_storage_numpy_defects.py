"""Ufuncs of storages are right where NumPy's loops for strided memory are not (docs/limits.md)."""

from __future__ import annotations

import itertools
import sys
from collections.abc import Callable
from typing import Any

import gridbuf.storage
import gridbuf.testing
import numpy as np
import pytest

UFUNCS = [np.negative, np.isfinite, np.isinf, np.isnan, np.signbit]


def numbers(shape: tuple[int, ...], dtype: str) -> np.ndarray:
    values = np.arange(1, 1 + np.prod(shape)).astype(dtype).reshape(shape)
    if values.dtype.kind == "f":
        values[..., ::3] = np.nan
        values[..., 1::3] = -np.inf
    return values


@pytest.mark.parametrize("device", [None, "gpu"])
@pytest.mark.parametrize("dtype", ["i4", "i8", "f4", "f8"])
@pytest.mark.parametrize("ufunc", UFUNCS, ids=lambda ufunc: ufunc.__name__)
def test_padded_layouts(ufunc: np.ufunc, dtype: str, device: Any) -> None:
    with gridbuf.testing.emulated_device():
        for shape in [(1, 3), (1, 40), (5, 1), (4, 17), (1, 1)]:
            for layout in [(1, 0), (0, 1)]:
                for alignment in [1, 16, 64]:
                    values = numbers(shape, dtype)
                    storage = gridbuf.storage.storage(
                        values, dims="IJ", layout=layout, alignment_size=alignment, device=device
                    )
                    for _ in range(2):  # the second call takes the plan of the first
                        made = ufunc(storage)
                        np.testing.assert_array_equal(made.to_numpy(), ufunc(values))
                    out = gridbuf.storage.zeros(
                        shape, made.dtype, dims="IJ", layout=layout[::-1], alignment_size=64, device=device
                    )  # fmt: skip
                    ufunc(storage, out=out)
                    np.testing.assert_array_equal(out.to_numpy(), ufunc(values))
                    mask = np.arange(values.size).reshape(shape) % 2 == 0
                    out[...] = 1
                    ufunc(
                        storage,
                        out=out,
                        where=gridbuf.storage.storage(mask, dims="IJ", device=device),
                    )
                    np.testing.assert_array_equal(out.to_numpy(), np.where(mask, ufunc(values), 1))


COMPARISONS = [np.equal, np.not_equal, np.less, np.less_equal, np.greater, np.greater_equal]


@pytest.mark.parametrize("ufunc", COMPARISONS, ids=lambda ufunc: ufunc.__name__)
def test_integers_of_python_beyond_the_type_compare_under_a_mask(ufunc: np.ufunc) -> None:
    """NumPy crashes."""
    mask = np.arange(40) % 3 == 0
    with gridbuf.testing.emulated_device():
        for device, dtype in itertools.product(
            [None, "gpu"], ["i1", "u1", "u2", "i4", "u8", "f4", "?"]
        ):
            array = np.arange(40).astype(dtype)
            storage = gridbuf.storage.storage(array, device=device)
            for number in (-1, 0, 1, True, 300, -(2**40), 2**63, 2**80):
                if number >= 2**63 and dtype in ("f4", "?"):
                    continue  # an OverflowError
                for inputs, plain in [
                    ((storage, number), (array, number)),
                    ((number, storage), (number, array)),
                ]:
                    for out_dtype in ("?", "i4"):
                        out = gridbuf.storage.full((40,), 1, out_dtype, device=device)
                        where = gridbuf.storage.storage(mask, device=device)
                        assert ufunc(*inputs, out=out, where=where) is out
                        expected = np.where(mask, ufunc(*plain), 1)
                        np.testing.assert_array_equal(out.to_numpy(), expected)
            flags = gridbuf.storage.storage(mask, device=device)
            ufunc(storage, -(2**40), out=flags, where=flags[::-1])
            expected = np.where(mask[::-1], ufunc(array, -(2**40)), mask)
            np.testing.assert_array_equal(flags.to_numpy(), expected)


@pytest.mark.parametrize("device", [None, "gpu"])
def test_wrapped_indices_end(device: Any) -> None:
    """NumPy adds the extent until the index is in bounds, which never ends if the extent is 0."""
    with gridbuf.testing.emulated_device():
        empty = gridbuf.storage.zeros((4, 0, 0), device=device)
        for indices in (0, [1, -1], np.array([5]), []):
            shape = (4, *np.shape(indices), 0)
            assert np.take(empty, indices, axis=1, mode="wrap").shape == shape
            assert np.take(empty, indices, axis="J", mode="clip").shape == shape
        with pytest.raises(IndexError, match="empty"):
            np.take(gridbuf.storage.zeros((4, 0), device=device), 0, axis=1, mode="wrap")
        values = np.arange(12).reshape(3, 4)
        storage = gridbuf.storage.storage(values, device=device)
        for dtype, axis in itertools.product(["i1", "u2", "i8"], [None, 0, 1, -1]):
            indices = np.array([0, 1, 100, 7, np.iinfo(dtype).max]).astype(dtype)
            if dtype != "u2":
                indices[1] = np.iinfo(dtype).min
            extent = values.size if axis is None else values.shape[axis]
            expected = np.take(values, [int(i) % extent for i in indices], axis=axis)
            found = np.take(storage, indices, axis=axis, mode="wrap")
            np.testing.assert_array_equal(np.asarray(found), expected)
        chosen = gridbuf.storage.storage(np.array([0, -1, 2**62, -(2**62) + 1]), device=device)
        found = np.choose(chosen, [chosen * 0 + n for n in (10, 11, 12)], mode="wrap")
        expected = [10 + int(i) % 3 for i in chosen.tolist()]
        assert found.tolist() == expected
        for axis in (2, -3, "K"):
            with pytest.raises((ValueError, IndexError)):
                np.take(storage, 0, axis=axis, mode="wrap")
        with pytest.raises((TypeError, ValueError)):
            np.take(storage, [1.5], axis=0, mode="wrap")


@pytest.mark.parametrize("dtype", ["f8", "i4", ">f4"])
@pytest.mark.parametrize(
    "name",
    ["cumprod", "cumsum", "cumulative_prod", "cumulative_sum", "nancumprod", "nancumsum"],
)
def test_outputs_of_accumulations_have_the_shape_of_the_result(name: str, dtype: str) -> None:
    """NumPy writes beyond an output, or leaves it unchanged, where the extents of the result are 1."""
    function = getattr(np, name)
    for shape in [(), (1,), (3,), (1, 2), (1, 1, 2), (0, 1)]:
        plain = np.full(shape, 1.5)
        storage = gridbuf.storage.storage(plain)
        for axis in range(max(1, len(shape))):
            expected = function(plain, axis=axis)
            for other in [
                *((2, *expected.shape[:axis]), expected.shape[:-1], (0,) * expected.ndim),
                tuple(2 if extent == 1 else extent for extent in expected.shape),
                tuple(extent + 1 for extent in expected.shape),
            ]:
                if other == expected.shape:
                    continue
                for out in (np.full(other, 7, dtype), gridbuf.storage.full(other, 7, dtype)):
                    is_wider = not isinstance(out, np.ndarray) and set(out.dims) > set(storage.dims)
                    if is_wider and out.shape[: len(shape)] == expected.shape:
                        continue  # repeated along the dimension that is new
                    with pytest.raises(ValueError, match="out"):
                        function(storage, axis=axis, out=out)
                    assert (np.asarray(out) == 7).all()
            out = gridbuf.storage.full(expected.shape, 7, "f8")
            function(storage, axis=axis, out=out)
            np.testing.assert_array_equal(out.to_numpy(), expected)


@pytest.mark.parametrize("ufunc", [np.less, np.add, np.logaddexp])
@pytest.mark.parametrize("n", [6, 100, 9000])
def test_a_mask_holds_where_output_and_inputs_overlap(ufunc: np.ufunc, n: int) -> None:
    """NumPy writes what the mask leaves out if it also converts the output."""
    values = np.arange(n, dtype="f4")
    mask = np.arange(n) % 3 == 0
    out = gridbuf.storage.storage(values, dims="I")
    ufunc(out[::-1], out, out=out, where=mask, casting="unsafe")
    expected = np.where(mask, ufunc(values[::-1].copy(), values), values)
    np.testing.assert_array_equal(out.to_numpy(), expected.astype("f4"))


@pytest.mark.parametrize("device", [None, "gpu"])
def test_einsum_without_elements_writes_nothing(device: Any) -> None:
    """NumPy writes beyond the memory of its result (valgrind)."""
    with gridbuf.testing.emulated_device():
        whole = gridbuf.storage.ones((3, 3, 3), device=device)
        assert np.einsum("...ij->...i", whole[:, :0]).shape == (3, 0)
        assert np.asarray(np.einsum("ijk->ij", whole[:, :, :0])).tolist() == [[0.0] * 3] * 3
        out = gridbuf.storage.ones((3, 3), device=device)
        np.einsum("ijk->ij", whole[:, :, :0], out=out)
        assert out.sum() == 0.0


@pytest.mark.parametrize("device", [None, "gpu"])
def test_reductions_into_objects_are_refused(device: Any) -> None:
    """NumPy's to booleans release objects that were never there, until the process dies."""
    with gridbuf.testing.emulated_device():
        storage = gridbuf.storage.ones((2, 3), dims="IJ", device=device)
        one, two = np.array(None, dtype=object), np.array([None, None], dtype=object)
        calls: list[Callable[[], Any]] = [
            lambda: np.any(storage, out=one),
            lambda: np.all(storage, axis="J", out=two),
            lambda: storage.all(out=one),
            lambda: np.logical_or.reduce(storage, axis=None, dtype=bool, out=one),
            lambda: np.sum(storage, out=one),
        ]
        before = sys.getrefcount(None)
        for _ in range(1000):
            for call in calls:
                with pytest.raises(TypeError, match="out has the type object, but must be a type"):
                    call()
        assert sys.getrefcount(None) > before - 500
