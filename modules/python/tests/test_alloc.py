"""Allocation: every parameter of the functions, with good and bad values (rules P-1 ... P-30 of the specification)."""

from __future__ import annotations

import ctypes
import itertools
import math
import os
import resource
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import gridbuf
import ml_dtypes
import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from reference import (
    DTYPES,
    LIMIT_BYTES,
    MAX_ALIGNMENT_BYTES,
    RECORD,
    address,
    fill_bytes,
    named_layout,
    plan,
    raw,
    requests,
    without_gaps,
)

SHAPED = ["allocate", "plan", "empty", "zeros", "ones"]
LIKE = ["empty_like", "zeros_like", "ones_like", "from_array"]


def call(name: str, shape: Any = (2, 3), **keywords: Any) -> Any:
    """A function of the door with a shape, whatever its other arguments."""
    first = np.zeros(shape) if name.endswith("_like") or name == "from_array" else shape
    more = (7,) if name.startswith("full") else ()
    return getattr(gridbuf, name)(first, *more, **keywords)


EVERY = [*SHAPED, "full", *LIKE, "full_like"]


# ---- Layout: strides, padding, alignment. ----


@given(requests())
@settings(max_examples=300)
@example(
    {
        "shape": (3, 4, 5),
        "dtype": np.dtype("f8"),
        "layout": (2, 0, 1),
        "alignment_size": 1,
        "aligned_index": (0, 0, 0),
        "dims": ("I", "J", "K"),
    }
)
def test_a_request_gives_the_strides_of_the_rules(request: dict[str, Any]) -> None:
    buffer = gridbuf.allocate(**request)
    itemsize = request["dtype"].itemsize
    expected = plan(request["shape"], itemsize, request["layout"], request["alignment_size"])
    assert buffer.strides == expected.strides
    assert buffer.plan.padded_shape == expected.padded_shape
    assert buffer.plan.total_bytes == expected.total_bytes
    for key in ("shape", "dtype", "layout", "alignment_size", "aligned_index", "dims"):
        assert getattr(buffer, key) == request[key]
    assert buffer.plan == gridbuf.plan(**request)


@given(requests(min_extent=1))
@settings(max_examples=300)
def test_every_element_at_the_aligned_contiguous_index_is_aligned(request: dict[str, Any]) -> None:
    buffer = gridbuf.allocate(**request)
    ndim, start = buffer.ndim, buffer.to_numpy().ctypes.data
    ranges = [range(extent) for extent in buffer.shape]
    if ndim:
        contiguous = buffer.layout.index(ndim - 1)
        ranges[contiguous] = range(
            buffer.aligned_index[contiguous], buffer.aligned_index[contiguous] + 1
        )
        if ndim == 1:
            ranges = [range(buffer.aligned_index[0], buffer.aligned_index[0] + 1)]
    for index in itertools.product(*ranges):
        offset = sum(i * stride for i, stride in zip(index, buffer.strides, strict=True))
        assert (start + offset) % request["alignment_size"] == 0


def test_three_cycles_are_not_inverted() -> None:
    strides = {
        layout: gridbuf.empty((3, 4, 5), layout=layout).strides
        for layout in ((2, 0, 1), (1, 2, 0), (0, 2, 1))
    }
    assert strides == {(2, 0, 1): (8, 120, 24), (1, 2, 0): (32, 8, 96), (0, 2, 1): (160, 8, 32)}


@pytest.mark.parametrize("shape", [(), (8,), (0,), (3, 0, 4), (7, 5)])
def test_element_zero_is_64_byte_aligned_without_a_constraint(shape: tuple[int, ...]) -> None:
    arrays = [gridbuf.empty(shape) for _ in range(5)]
    assert [array.ctypes.data % 64 for array in arrays] == [0] * 5


def test_one_dimension_is_not_padded() -> None:
    assert gridbuf.plan((5,), alignment_size=64).padded_shape == (5,)


@pytest.mark.parametrize("alignment", [1, 3, 64, 1000, MAX_ALIGNMENT_BYTES])
def test_any_integer_is_an_alignment(alignment: int) -> None:
    array = gridbuf.empty((3, 5), alignment_size=alignment, aligned_index=(1, 2))
    assert array[1:, 2:].ctypes.data % alignment == 0


@pytest.mark.parametrize("name", EVERY)
def test_alignment_size_has_bounds(name: str) -> None:
    for bad in (0, -1, MAX_ALIGNMENT_BYTES + 1, 2**64, -(2**70)):
        with pytest.raises(ValueError, match=str(bad)):
            call(name, alignment_size=bad)
    for bad in (1.0, "64", True, [64], object()):
        with pytest.raises(TypeError, match="alignment_size"):
            call(name, alignment_size=bad)


@pytest.mark.parametrize("name", EVERY)
def test_aligned_index_is_an_index_of_the_array(name: str) -> None:
    for bad in ((2, 0), (0, 3), (-1, 0), (0,), (0, 0, 0), (0, 2**65)):
        with pytest.raises(ValueError, match="aligned_index"):
            call(name, aligned_index=bad)
    for bad in ((0.0, 0), ("0", 0), (True, 0), 5, "00", {0: 1}, None.__class__):
        with pytest.raises(TypeError, match="aligned_index"):
            call(name, aligned_index=bad)


def test_aligned_index_may_be_zero_where_there_is_no_element() -> None:
    assert gridbuf.allocate((0, 3), aligned_index=(0, 2)).aligned_index == (0, 2)
    with pytest.raises(ValueError, match="aligned_index"):
        gridbuf.allocate((0, 3), aligned_index=(1, 0))


def test_the_same_request_gives_the_same_strides_and_address_modulo_alignment() -> None:
    def facts() -> tuple[Any, int]:
        array = gridbuf.empty(
            (5, 7, 3), alignment_size=48, layout=(1, 2, 0), aligned_index=(1, 2, 0)
        )
        return array.strides, array.ctypes.data % 48

    held = [facts() for _ in range(20)]
    assert len(set(held)) == 1


# ---- Shapes and sizes. ----


@pytest.mark.parametrize("name", SHAPED)
@pytest.mark.parametrize(
    "shape", [(3, 4), [3, 4], np.array([3, 4]), range(3, 5), (np.int8(3), np.uint64(4))]
)
def test_a_shape_is_any_sequence_of_integers(name: str, shape: Any) -> None:
    assert call(name, shape).shape == (3, 4)


def test_one_integer_is_a_shape_of_one_dimension() -> None:
    assert gridbuf.empty(5).shape == (5,)
    assert gridbuf.empty(np.int64(5)).shape == (5,)


@pytest.mark.parametrize("name", [*SHAPED, "full"])
def test_what_is_no_shape(name: str) -> None:
    for bad in (
        "34",
        b"34",
        bytearray(b"3"),
        3.0,
        (3.0,),
        ("3",),
        (None,),
        (True,),
        None,
        {},
        {3, 4},
    ):
        with pytest.raises(TypeError, match="shape"):
            call(name, bad)
    for bad in (iter((3, 4)), object(), lambda: 0):
        with pytest.raises(TypeError, match="shape"):
            call(name, bad)
    for bad in ((-1,), (3, -(2**70)), -1, (2**64, 1), (1,) * 65, (1,) * 1000):
        with pytest.raises(ValueError, match="shape"):
            call(name, bad)


@given(
    st.lists(st.integers(0, 2**63 - 1), min_size=1, max_size=4),
    st.sampled_from([np.dtype("u1"), np.dtype("f8"), RECORD]),
    st.sampled_from([1, 7, 64, 4096]),
)
@example([2**60], np.dtype("f8"), 1)
@example([2**31, 2**31], np.dtype("f8"), 1)
@example([3, 2**63 - 1], np.dtype("u1"), 64)
@example([2**62, 2**62, 0], np.dtype("u1"), 1)
def test_sizes_are_those_of_big_integers_or_an_error(
    shape: list[int], dtype: np.dtype[Any], alignment: int
) -> None:
    expected = plan(shape, dtype.itemsize, alignment=alignment)
    dense = math.prod(max(extent, 1) for extent in shape) * dtype.itemsize
    biggest = max(
        [
            dense,
            *(max(n, 1) * s for n, s in zip(expected.padded_shape, expected.strides, strict=True)),
        ]
    )
    if biggest <= LIMIT_BYTES:
        found = gridbuf.plan(shape, dtype, alignment_size=alignment)
        assert found.total_bytes == expected.total_bytes
        assert found.strides == expected.strides
        assert found.nbytes == math.prod(shape) * dtype.itemsize
    else:
        with pytest.raises(ValueError, match=str(LIMIT_BYTES)) as caught:
            gridbuf.plan(shape, dtype, alignment_size=alignment)
        assert str(shape[0]) in str(caught.value)


def test_the_error_of_a_size_names_shape_dtype_and_limit() -> None:
    with pytest.raises(
        ValueError, match=r"\(1099511627776, 1099511627776\).*float32.*9223372036854775807"
    ):
        gridbuf.empty((2**40, 2**40), np.float32)
    with pytest.raises(
        ValueError, match=r"\(3, 1180591620717411303424\).*float64.*9223372036854775807"
    ):
        gridbuf.empty((3, 2**70))


def test_out_of_memory_names_everything() -> None:
    with pytest.raises(MemoryError) as caught:
        gridbuf.zeros((2**40, 100), layout=(1, 0), alignment_size=64, aligned_index=(3, 0))
    text = str(caught.value)
    for part in (
        "shape (1099511627776, 100)",
        "dtype float64",
        "layout (1, 0)",
        "padded shape (1099511627776, 100)",
        "alignment 64 bytes",
        "(3, 0)",
        "memory host",
        "879609302220800 bytes",
    ):
        assert part in text


def test_populate_reports_a_lack_of_memory_here() -> None:
    with pytest.raises(MemoryError, match="bytes"):
        gridbuf.allocate((2**40,), "u1", populate=True)
    assert gridbuf.zeros((1000, 1000), populate=True).sum() == 0


@pytest.mark.skipif(
    "GRIDBUF_EMULATED" in os.environ, reason="the emulator does not limit the memory of its program"
)
def test_under_a_limit_of_address_space_it_is_a_memory_error() -> None:
    code = (
        "import resource, gridbuf\n"
        "gridbuf.empty((8,))\n"
        "used = int(open('/proc/self/statm').read().split()[0]) * resource.getpagesize()\n"
        "resource.setrlimit(resource.RLIMIT_AS, (used + 2**28, used + 2**28))\n"
        "try:\n    gridbuf.zeros((2**30,), 'u1')\n"
        "except MemoryError as error:\n    assert '1.0 GiB' in str(error), error\n"
        "else:\n    raise SystemExit('no MemoryError')\n"
        "assert gridbuf.zeros((2**20,), 'u1').sum() == 0\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_a_field_of_3_gib_can_be_touched_at_both_ends() -> None:
    field = gridbuf.empty((1024, 1024, 384), layout=(2, 1, 0), alignment_size=64)
    assert field.nbytes == 3 * 2**30
    field[0, 0, 0], field[-1, -1, -1] = 1.5, 2.5
    assert (field[0, 0, 0], field[-1, -1, -1]) == (1.5, 2.5)
    assert field[-1:, -1:, -1:].ctypes.data - field.ctypes.data == 3 * 2**30 - 8


def test_1024_cubed_doubles_are_allocated_untouched() -> None:
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    buffer = gridbuf.allocate((1024, 1024, 1024))
    assert buffer.nbytes == 2**33
    assert buffer.strides == (2**23, 2**13, 8)
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 100 * 1024  # KiB


# ---- Element types. ----


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_every_fixed_size_dtype_holds_its_elements(dtype: np.dtype[Any]) -> None:
    array = fill_bytes(gridbuf.empty((3, 4), dtype, layout=(1, 0), alignment_size=64))
    assert array.dtype == dtype
    expected = fill_bytes(np.empty((3, 4), dtype))
    assert raw(array) == raw(expected)


@pytest.mark.parametrize("name", EVERY)
def test_dtypes_without_a_fixed_size_are_refused(name: str) -> None:
    variable = [np.dtypes.StringDType()] if hasattr(np.dtypes, "StringDType") else []
    for bad in (object, "O", [("a", "i4"), ("b", "O")], "U", "S", "V", "S0", *variable):
        with pytest.raises(TypeError, match="dtype"):
            call(name, dtype=bad)


@pytest.mark.parametrize("name", EVERY)
def test_what_is_no_dtype(name: str) -> None:
    for bad in ("no such type", 3, 2.5, (1, 2, 3)):
        with pytest.raises(TypeError):
            call(name, dtype=bad)


def test_the_default_dtype_is_float64_and_like_functions_take_that_of_the_data() -> None:
    assert gridbuf.empty((2,)).dtype == gridbuf.zeros((2,), None).dtype == np.float64
    assert gridbuf.zeros_like(np.zeros(3, np.int16)).dtype == np.int16
    assert gridbuf.zeros_like(np.zeros(3, np.int16), np.float32).dtype == np.float32


def test_a_subarray_dtype_adds_its_shape_as_in_numpy() -> None:
    assert (
        gridbuf.zeros((2,), ("f4", (3, 4))).shape
        == np.zeros((2,), ("f4", (3, 4))).shape
        == (2, 3, 4)
    )
    with pytest.raises(TypeError, match="dtype"):
        gridbuf.zeros_like(np.zeros(2), ("f4", (3,)))


# ---- Layout maps, names, presets. ----


@pytest.mark.parametrize("name", EVERY)
def test_what_is_no_layout(name: str) -> None:
    for bad in ((0, 0), (1, 2), (0,), (0, 1, 2), (-1, 0), (0, 2**40), lambda dims: (0, 0)):
        with pytest.raises(ValueError, match="layout"):
            call(name, layout=bad)
    for bad in ("01", 1, (0.0, 1), (True, False), {0: 1}, lambda dims: None, object()):
        with pytest.raises(TypeError, match="layout"):
            call(name, layout=bad)


def test_a_layout_may_be_a_callable_of_the_dims() -> None:
    seen = []

    def layout(dims: tuple[str, ...]) -> list[int]:
        seen.append(dims)
        return [1, 0]

    assert gridbuf.allocate((2, 3), layout=layout, dims="KI").layout == (1, 0)
    assert seen == [("K", "I")]
    with pytest.raises(ZeroDivisionError):
        gridbuf.allocate((2, 3), layout=lambda dims: 1 // 0)


@pytest.mark.parametrize("name", EVERY)
def test_what_are_no_dims(name: str) -> None:
    for bad in (
        "II",
        "I-",
        "I",
        "IJK",
        ("I", "I"),
        ("I", "-1"),
        ("I", "01"),
        ("I", ""),
        ["I", "a b"],
        ["I", "×"],
        ["I", "x" * 64],
    ):
        with pytest.raises(ValueError, match="dim"):
            call(name, dims=bad)
    for bad in (5, ("I", 0), (None, "J"), {"I", "J"}, b"IJ"):
        with pytest.raises(TypeError, match="dims"):
            call(name, dims=bad)


def test_default_dims_are_ijk_then_numbers() -> None:
    names = [gridbuf.allocate((1,) * ndim).dims for ndim in (0, 1, 2, 3, 5)]
    assert names == [(), ("I",), ("I", "J"), ("I", "J", "K"), ("I", "J", "K", "0", "1")]
    assert gridbuf.allocate((1, 1), dims=["10", "2"]).dims == ("10", "2")


PRESETS = {
    "debug": (1, (0, 1, 2)),
    "numpy": (1, (0, 1, 2)),
    "gt:cpu_kfirst": (1, (0, 1, 2)),
    "gtx86": (1, (0, 1, 2)),
    "gt:cpu_ifirst": (64, (2, 1, 0)),
    "gtmc": (64, (2, 0, 1)),
    "gt:gpu": (128, (2, 1, 0)),
    "gtcuda": (128, (2, 1, 0)),
    "dace:cpu": (1, (1, 2, 0)),
    "dace:cpu_kfirst": (1, (0, 1, 2)),
    "dace:cpu_KJI": (1, (2, 1, 0)),
    "dace:gpu": (1, (2, 1, 0)),
    "dace:gpu_IJK": (1, (0, 1, 2)),
}
DIMS = ["IJK", "KJI", "JKI", "IK", "KI", "IJK0", "0KJI", "I0J1", ("10", "I", "2"), ""]


@pytest.mark.parametrize("backend", PRESETS)
@pytest.mark.parametrize("dims", DIMS, ids=str)
def test_a_preset_orders_dimensions_by_name(backend: str, dims: str | tuple[str, ...]) -> None:
    alignment, ranks = PRESETS[backend]
    # device=None is explicit: host memory in the layout of a GPU preset.
    buffer = gridbuf.allocate((3,) * len(dims), backend=backend, dims=dims, device=None)
    assert buffer.layout == named_layout(ranks, dims)
    assert buffer.alignment_size == alignment


def test_positional_presets_ignore_names() -> None:
    assert gridbuf.allocate((2, 3, 4), backend="F", dims="KJI").layout == (2, 1, 0)
    assert gridbuf.allocate((2, 3, 4), backend="C", dims="KJI").layout == (0, 1, 2)


def test_presets_lists_what_can_be_asked_for() -> None:
    presets = gridbuf.presets()
    assert set(PRESETS) | {"C", "F"} <= set(presets)
    assert presets["gtmc"] == {"device": None, "alignment_size": 64, "layout": (2, 0, 1)}
    assert presets["gt:gpu"] == {"device": "gpu", "alignment_size": 128, "layout": (2, 1, 0)}
    assert presets["F"] == {"device": None, "alignment_size": 1, "layout": "F"}


@pytest.mark.parametrize("name", EVERY)
def test_an_unknown_backend_lists_close_matches(name: str) -> None:
    with pytest.raises(ValueError, match="gt:cpu_ifirst"):
        call(name, backend="gt:cpu_ifrist")
    for bad in (5, b"debug", ("debug",)):
        with pytest.raises(TypeError, match="backend"):
            call(name, backend=bad)


def test_a_registered_preset_is_used_and_stays() -> None:
    gridbuf.register_preset("test:mine", alignment_size=24, layout=(1, 2, 0))
    buffer = gridbuf.allocate((2, 3, 4), backend="test:mine")
    assert (buffer.alignment_size, buffer.layout) == (24, (1, 2, 0))
    gridbuf.register_preset("test:mine", alignment_size=24, layout=(1, 2, 0))  # the same again
    with pytest.raises(ValueError, match="test:mine"):
        gridbuf.register_preset("test:mine", alignment_size=25)
    gridbuf.register_preset("test:fortran", **gridbuf.presets()["F"])
    assert gridbuf.presets()["test:fortran"] == gridbuf.presets()["F"]


@pytest.mark.parametrize(
    ("keywords", "error"),
    [
        ({"name": ""}, ValueError),
        ({"name": 5}, TypeError),
        ({}, TypeError),
        ({"name": "test:bad", "alignment_size": 0}, ValueError),
        ({"name": "test:bad", "alignment_size": "1"}, TypeError),
        ({"name": "test:bad", "layout": (0, 1)}, ValueError),
        ({"name": "test:bad", "layout": (0, 1, 1)}, ValueError),
        ({"name": "test:bad", "layout": (0, 1, 2**40)}, ValueError),
        ({"name": "test:bad", "layout": "X"}, ValueError),
        ({"name": "test:bad", "layout": 5}, TypeError),
        ({"name": "test:bad", "device": "cpu"}, ValueError),
        ({"name": "test:bad", "device": 0}, TypeError),
        ({"name": "test:bad", "ranks": (0, 1, 2)}, TypeError),
    ],
)
def test_a_bad_preset_is_not_registered(keywords: dict[str, Any], error: type[Exception]) -> None:
    with pytest.raises(error):
        gridbuf.register_preset(**keywords)
    assert "test:bad" not in gridbuf.presets()


# ---- The order in which a parameter is looked up. ----


def test_explicit_parameters_override_a_preset() -> None:
    buffer = gridbuf.allocate((2, 3, 4), backend="gtmc", layout=(1, 2, 0), alignment_size=8)
    assert (buffer.layout, buffer.alignment_size) == ((1, 2, 0), 8)


def test_a_preset_overrides_the_data_and_the_data_the_fallback() -> None:
    data = gridbuf.allocate(
        (2, 3, 4), layout=(1, 0, 2), alignment_size=32, aligned_index=(1, 1, 1), dims="KJI"
    )
    like = gridbuf.empty_like(data).base
    for key in ("layout", "alignment_size", "aligned_index", "dims", "shape", "dtype"):
        assert getattr(like, key) == getattr(data, key)
    preset = gridbuf.empty_like(data, backend="gtmc").base
    assert preset.layout == named_layout((2, 0, 1), "KJI")
    assert (preset.alignment_size, preset.aligned_index, preset.dims) == (64, (1, 1, 1), data.dims)
    explicit = gridbuf.empty_like(data, backend="gtmc", alignment_size=16, dims="JIK").base
    assert (explicit.alignment_size, explicit.layout) == (16, named_layout((2, 0, 1), "JIK"))


def test_none_means_not_given_but_for_the_device() -> None:
    nothing = dict.fromkeys(("backend", "layout", "alignment_size", "aligned_index", "dims"))
    data = gridbuf.allocate((2, 3), layout=(1, 0), alignment_size=32, dims="KJ")
    like = gridbuf.empty_like(data, **nothing).base
    assert (like.layout, like.alignment_size, like.dims) == ((1, 0), 32, ("K", "J"))
    assert gridbuf.allocate((2, 3), backend="gt:gpu", device=None).device is None


@pytest.mark.parametrize("name", EVERY)
def test_gpu_memory_is_refused_with_what_was_looked_for(name: str) -> None:
    for keywords in (
        {"device": "gpu"},
        {"backend": "gt:gpu"},
        {"backend": "debug", "memory": "device"},
    ):
        if name == "plan":  # Elements have the same places everywhere.
            assert call(name, **keywords).nbytes > 0
            continue
        try:
            made = call(name, **keywords)
        except gridbuf.DeviceUnavailableError as error:
            assert "CUDA" in str(error)
            assert name == "allocate" or "cupy" in str(error)
        else:
            assert made.device is not None  # There is a GPU here, and CuPy for plain arrays.
    for bad, error in (("cpu", ValueError), ("", ValueError), (0, TypeError), (False, TypeError)):
        with pytest.raises(error, match="device"):
            call(name, device=bad)


def test_plain_arrays_give_their_parameters_to_like_functions() -> None:
    data = gridbuf.zeros((4, 6), backend="gt:cpu_ifirst", aligned_index=(1, 1), dims="JI")
    like = gridbuf.ones_like(data)
    assert like.base.alignment_size == 64
    assert like.base.aligned_index == (1, 1)
    assert like.base.dims == ("J", "I")
    assert like.strides == data.strides


def test_an_array_that_is_not_ours_gives_the_order_of_its_strides() -> None:
    base = np.zeros((4, 5, 6)).transpose(1, 2, 0)  # strides (48, 8, 240)
    like = gridbuf.zeros_like(base)
    assert like.base.layout == (1, 2, 0)
    assert like.base.alignment_size == 1
    assert like.base.dims == ("I", "J", "K")
    assert gridbuf.zeros_like(base[::-1, ::2]).base.layout == (1, 2, 0)  # |stride| counts
    assert gridbuf.zeros_like([[1, 2], [3, 4]]).dtype == np.int64


def test_extents_of_one_and_empty_arrays_have_no_order() -> None:
    assert gridbuf.zeros_like(np.zeros((3, 1, 4)).transpose(2, 1, 0)).base.layout == (2, 1, 0)
    assert gridbuf.zeros_like(np.zeros((3, 0, 4)).transpose(2, 1, 0)).base.layout == (0, 1, 2)


class WithDims(np.ndarray):
    """An ndarray that can have attributes."""


@pytest.mark.parametrize("as_method", [False, True])
def test_like_functions_read_the_names_that_an_array_declares(as_method: bool) -> None:
    data = np.zeros((2, 3)).view(WithDims)
    data.__gt_dims__ = (lambda: ("K", "0")) if as_method else ("K", "0")
    assert gridbuf.get_dims(data) == ("K", "0")
    assert gridbuf.zeros_like(data).base.dims == ("K", "0")
    data.__gt_dims__ = ("K", "K")
    with pytest.raises(ValueError, match="K"):
        gridbuf.zeros_like(data)


def test_a_dims_attribute_counts_only_if_its_names_are_valid() -> None:
    data = np.zeros((2, 3)).view(WithDims)
    data.dims = ("K", "I")
    assert gridbuf.get_dims(data, "IJ") == ("K", "I")
    data.dims = ("longitude", "latitude")
    assert gridbuf.get_dims(data, "IJ") == ("longitude", "latitude")
    assert gridbuf.zeros_like(data).base.dims == ("longitude", "latitude")
    data.dims = ("along track", 2)
    assert gridbuf.get_dims(data, "IJ") == ("I", "J")
    assert gridbuf.zeros_like(data).base.dims == ("I", "J")


def test_get_dims_falls_back_to_the_annotation() -> None:
    assert gridbuf.get_dims(np.zeros((2, 3)), "KJ") == ("K", "J")
    assert gridbuf.get_dims(np.zeros((2, 3))) is None
    assert gridbuf.get_dims(gridbuf.zeros((2, 3), dims="KJ"), "IJ") == ("K", "J")
    assert gridbuf.get_dims(gridbuf.allocate((2, 3), dims="KJ"), "IJ") == ("K", "J")
    with pytest.raises(ValueError, match="dim"):
        gridbuf.get_dims(np.zeros((2, 3)), "IJK")
    with pytest.raises(TypeError, match="object"):
        gridbuf.get_dims()


# ---- Contents. ----


def padding_bytes(array: np.ndarray) -> bytes:
    """The bytes between the elements of a plain array, up to the end of its allocation."""
    size = array.base.plan.total_bytes
    everything = np.frombuffer(ctypes.string_at(array.ctypes.data, size), np.uint8)
    offsets = np.zeros(array.shape, np.int64)
    for axis, stride in enumerate(array.strides):
        steps = np.arange(array.shape[axis]) * stride
        offsets += steps.reshape([-1 if a == axis else 1 for a in range(array.ndim)])
    taken = np.zeros(size, bool)
    for offset in offsets.ravel():
        taken[offset : offset + array.itemsize] = True
    return everything[~taken].tobytes()


FILLED: dict[str, Callable[..., Any]] = {
    "zeros": lambda **k: gridbuf.zeros((3, 5), **k),
    "ones": lambda **k: gridbuf.ones((3, 5), **k),
    "full": lambda **k: gridbuf.full((3, 5), 7.0, **k),
    "full of an array": lambda **k: gridbuf.full((3, 5), [1, 2, 3, 4, 5], **k),
    "zeros_like": lambda **k: gridbuf.zeros_like(np.empty((3, 5)), **k),
    "ones_like": lambda **k: gridbuf.ones_like(np.empty((3, 5)), **k),
    "full_like": lambda **k: gridbuf.full_like(np.empty((3, 5)), 7.0, **k),
    "from_array": lambda **k: gridbuf.from_array(np.ones((3, 5)), **k),
    "from_array, converted": lambda **k: gridbuf.from_array(np.ones((3, 5), "i4"), "f8", **k),
    "copy": lambda **k: gridbuf.ones((3, 5), **k).base.copy().to_numpy(),
}


@pytest.mark.parametrize("name", FILLED)
@pytest.mark.parametrize("layout", [(0, 1), (1, 0)])
def test_padding_is_zeroed_by_every_function_but_empty(name: str, layout: tuple[int, int]) -> None:
    for _ in range(3):  # Freed memory with other contents is likely to be handed out again.
        used = gridbuf.empty((3, 5), layout=layout, alignment_size=128)
        used.base.to_numpy()[...] = -1.0
        del used
        array = FILLED[name](layout=layout, alignment_size=128)
        padding = padding_bytes(array)
        assert len(padding) > 0
        assert padding == bytes(len(padding))


@pytest.mark.parametrize(
    ("value", "dtype"),
    [
        (7, "f8"),
        (2.9, "i4"),
        (-1, "f4"),
        (1 + 2j, "c8"),
        ("12", "f8"),
        ("abc", "U3"),
        (b"abcdefg", "S3"),
        (np.float64(1e300), "f4"),
        (np.datetime64("2020-01-01"), "M8[s]"),
        ([1, 2, 3], "i2"),
        ([[1], [2]], "f8"),
        (np.array(5), "u1"),
        (True, "?"),
        ((1, 2.5, 3), RECORD),
        (1.5, ml_dtypes.bfloat16),
    ],
)
def test_full_casts_as_numpy_does(value: Any, dtype: Any) -> None:
    with np.errstate(over="ignore"):
        expected = np.full((2, 3), value, dtype)
        assert raw(gridbuf.full((2, 3), value, dtype)) == raw(expected)
        assert raw(gridbuf.full_like(np.zeros((2, 3)), value, dtype)) == raw(expected)


@pytest.mark.parametrize(
    ("value", "dtype"), [("x", "f8"), ([1, 2], "f8"), (None, "i4"), (300, "u1")]
)
def test_full_fails_as_numpy_does(value: Any, dtype: str) -> None:
    with pytest.raises(Exception) as expected:  # noqa: PT011 (NumPy's class is the expectation)
        np.full((2, 3), value, dtype)
    with pytest.raises(expected.type):
        gridbuf.full((2, 3), value, dtype)


@pytest.mark.parametrize("dtype", [d for d in DTYPES if d.kind != "V" or d.names], ids=str)
def test_ones_are_numpys(dtype: np.dtype[Any]) -> None:
    try:
        expected = np.ones((2, 3), dtype)
    except TypeError:
        with pytest.raises(TypeError):
            gridbuf.ones((2, 3), dtype)
    else:
        assert repr(gridbuf.ones((2, 3), dtype, layout=(1, 0))) == repr(expected)


@given(requests(max_ndim=4))
@settings(max_examples=200)
def test_from_array_copies_every_element(request: dict[str, Any]) -> None:
    shape, dtype = request.pop("shape"), request.pop("dtype")
    source = fill_bytes(np.empty(shape, dtype))
    copied = gridbuf.from_array(source, **request)
    assert copied.dtype == dtype
    assert raw(copied) == raw(without_gaps(source))
    assert not np.shares_memory(copied, source)
    view = source[(..., *(slice(None, None, -2) for _ in shape))]
    assert raw(gridbuf.from_array(view)) == raw(without_gaps(view))


def test_from_array_takes_what_asarray_takes_and_converts() -> None:
    assert gridbuf.from_array([[1, 2], [3, 4]], "f4").tolist() == [[1.0, 2.0], [3.0, 4.0]]
    assert gridbuf.from_array(5).shape == ()
    assert gridbuf.from_array(memoryview(b"abc")).tolist() == [97, 98, 99]
    assert gridbuf.from_array(gridbuf.ones((2, 3)).base).tolist() == [[1.0] * 3] * 2
    assert gridbuf.from_array(np.array([1.7]), int).tolist() == [1]
    big = np.array([1, 2], ">i4")
    assert gridbuf.from_array(big).dtype == big.dtype
    assert gridbuf.from_array(big, "<i4").tolist() == [1, 2]
    with pytest.raises(TypeError, match="dtype"):
        gridbuf.from_array([object()])


# ---- Plain arrays. ----


@pytest.mark.parametrize("name", [name for name in EVERY if name not in ("allocate", "plan")])
def test_plain_arrays_are_ndarrays_over_a_buffer(name: str) -> None:
    array = call(name, alignment_size=64, layout=(1, 0))
    assert type(array) is np.ndarray
    assert type(array.base) is gridbuf.Buffer
    assert array.flags.writeable
    assert array.ctypes.data == address(array.base)
    assert not array.flags.owndata


def test_two_results_never_share_memory() -> None:
    arrays = [gridbuf.empty((n, 3), alignment_size=64) for n in range(20)]
    for one, other in itertools.combinations(arrays, 2):
        assert not np.shares_memory(one, other)


# ---- Names of parameters. ----


@pytest.mark.parametrize("name", EVERY)
@pytest.mark.parametrize(
    ("old", "today"),
    [
        ("default_parameters", "backend"),
        ("defaults", "backend"),
        ("layout_map", "layout"),
        ("order", "layout"),
        ("ndims", "ndim"),
        ("gpu", "device"),
        ("value", "fill_value"),
        ("alignment", "alignment_size"),
        ("default_origin", "aligned_index"),
        ("axes", "dims"),
        ("mask", "dims"),
        ("halo", "storages"),
        ("managed", "storages"),
    ],
)
def test_old_spellings_name_todays(name: str, old: str, today: str) -> None:
    with pytest.raises(TypeError, match=today):
        call(name, **{old: 1})


@pytest.mark.parametrize("name", [*LIKE, "full_like"])
def test_the_shape_of_like_functions_cannot_be_overridden(name: str) -> None:
    more = (7,) if name == "full_like" else ()
    with pytest.raises(TypeError, match="overridden"):
        getattr(gridbuf, name)(np.zeros(3), *more, shape=(3,))


@pytest.mark.parametrize("name", [*SHAPED, "full"])
def test_no_shape_anywhere_is_underdetermined(name: str) -> None:
    with pytest.raises(TypeError, match="underdetermined"):
        getattr(gridbuf, name)()
    with pytest.raises(TypeError, match="underdetermined"):
        getattr(gridbuf, name)(dtype="f8")


def test_fill_value_is_not_optional() -> None:
    with pytest.raises(TypeError, match="fill_value"):
        gridbuf.full((2,))
    with pytest.raises(TypeError, match="fill_value"):
        gridbuf.full_like(np.zeros(3))


@pytest.mark.parametrize("name", EVERY)
def test_unknown_repeated_and_surplus_arguments(name: str) -> None:
    with pytest.raises(TypeError, match="no_such_parameter"):
        call(name, no_such_parameter=1)
    with pytest.raises(TypeError, match="position"):
        getattr(gridbuf, name)((2, 3), "f8", None, None, None, None)
    first = "data" if name in (*LIKE, "full_like") else "shape"
    with pytest.raises(TypeError, match="twice"):
        getattr(gridbuf, name)((2, 3), **{first: (2, 3)})


@pytest.mark.parametrize("name", EVERY)
def test_populate_is_a_bool(name: str) -> None:
    for bad in (1, 0, "yes", [], np.bool_(True)):
        with pytest.raises(TypeError, match="populate"):
            call(name, populate=bad)
    call(name, populate=True)


def test_parameters_can_be_passed_by_name() -> None:
    assert gridbuf.empty(shape=(2, 3), dtype="f4").dtype == np.float32
    assert gridbuf.full(shape=(2,), fill_value=3, dtype="i4").tolist() == [3, 3]
    assert gridbuf.from_array(data=[1, 2], dtype="i4").tolist() == [1, 2]
