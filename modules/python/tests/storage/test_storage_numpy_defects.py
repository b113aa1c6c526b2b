"""Ufuncs of storages are right where NumPy's loops for strided memory are not (docs/limits.md)."""

from __future__ import annotations

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
