"""Plain arrays on the GPU, which are CuPy's. Needs CuPy and a CUDA device: elsewhere NOTHING OF THIS RUNS, and the skip says so."""

from __future__ import annotations

from typing import Any

import gridbuf
import numpy as np
import pytest

try:
    import cupy
except ImportError:
    cupy = None


@pytest.fixture(autouse=True)
def _gpu() -> None:
    if cupy is None:
        pytest.skip("NOT TESTED: plain GPU arrays need the package cupy")
    try:
        count = cupy.cuda.runtime.getDeviceCount()
    except cupy.cuda.runtime.CUDARuntimeError as error:
        pytest.skip(f"NOT TESTED: plain GPU arrays need a CUDA device ({error})")
    if count == 0:
        pytest.skip("NOT TESTED: plain GPU arrays need a CUDA device, and there are 0")


REQUEST: dict[str, Any] = {"layout": (2, 0, 1), "alignment_size": 96, "aligned_index": (1, 2, 3)}
SHAPE = (3, 4, 5)


@pytest.mark.parametrize("dtype", ["?", "i1", "u8", "f2", "f4", "f8", "c8", "c16"])
def test_a_plain_array_has_the_plan_in_cupys_memory(dtype: str) -> None:
    plan = gridbuf.plan(SHAPE, dtype, **REQUEST)
    array = gridbuf.zeros(SHAPE, dtype, device="gpu", **REQUEST)
    assert type(array) is cupy.ndarray
    assert (array.shape, array.dtype, array.strides) == (SHAPE, np.dtype(dtype), plan.strides)
    assert (array.data.ptr + plan.aligned_offset) % 96 == 0
    assert not array.any()


def test_the_bytes_come_from_the_current_allocator() -> None:
    taken: list[int] = []
    pool = cupy.cuda.MemoryPool()

    def allocate(length: int) -> Any:
        taken.append(length)
        return pool.malloc(length)

    with cupy.cuda.using_allocator(allocate):
        gridbuf.empty((64, 64), "f4", memory="device")
    assert len(taken) == 1 and taken[0] >= 64 * 64 * 4


def test_values_are_numpys() -> None:
    assert (gridbuf.full(SHAPE, 2.7, "i4", device="gpu").get() == 2).all()
    assert (gridbuf.ones(SHAPE, backend="gt:gpu").get() == 1).all()
    source = np.arange(60.0).reshape(SHAPE)
    np.testing.assert_array_equal(gridbuf.from_array(source, device="gpu").get(), source)
    np.testing.assert_array_equal(gridbuf.full(SHAPE, source[0], device="gpu").get()[2], source[0])


@pytest.mark.parametrize("dtype", [[("a", "i4")], ">f8", "U3", "M8[s]", "g"])
def test_other_dtypes_are_a_type_error(dtype: Any) -> None:
    with pytest.raises(TypeError, match="CuPy"):
        gridbuf.empty(SHAPE, dtype, device="gpu")


def test_no_elements_need_no_memory() -> None:
    assert gridbuf.zeros((0, 3), device="gpu").shape == (0, 3)
