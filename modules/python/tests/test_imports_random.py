"""Random descriptors, right and wrong, against a model in Python's integers: verdict and elements are the model's."""

from __future__ import annotations

import ctypes
import itertools
import math
from typing import Any

import numpy as np
import pytest
from exporters import Dict, Struct, Tensor
from hypothesis import event, given
from hypothesis import strategies as st

import gridbuf

# Every element is another value, so that an element read in the wrong place is seen.
BLOCK = bytearray(np.arange(2048, dtype="<u2").tobytes())
MOST = 2**63 - 1

small = st.integers(0, 5)
edges = st.sampled_from([2**31, 2**32, 2**61, 2**62, MOST - 1, MOST])
extents = st.lists(st.one_of(small, small, small, edges), max_size=4)
bytes_apart = st.one_of(
    st.integers(-64, 64), st.builds(lambda n, s: n * s, edges, st.sampled_from([1, -1]))
)


def hull(shape: list[int], strides: list[int], itemsize: int) -> tuple[int, int]:
    """The lowest and the highest byte offset that indexing can reach, by arithmetic that cannot overflow."""
    reach = [(extent - 1) * stride for extent, stride in zip(shape, strides, strict=True)]
    return sum(r for r in reach if r < 0), sum(r for r in reach if r > 0) + itemsize


def fits(shape: list[int], strides: list[int], itemsize: int, offset: int, length: int) -> bool:
    """Whether an array is one that must come in: it is inside `length` bytes, and its size can be said."""
    if math.prod(extent or 1 for extent in shape) * itemsize > MOST:
        return False
    if 0 in shape:
        return offset <= length
    lowest, highest = hull(shape, strides, itemsize)
    return offset + lowest >= 0 and offset + highest <= length


def elements(
    block: bytes, shape: list[int], strides: list[int], offset: int, itemsize: int
) -> list[bytes]:
    starts = [
        offset + sum(i * s for i, s in zip(index, strides, strict=True))
        for index in itertools.product(*map(range, shape))
    ]
    return [bytes(block[start : start + itemsize]) for start in starts]


def found_elements(array: np.ndarray[Any, Any]) -> list[bytes]:
    return [array[(*index, ...)].tobytes() for index in np.ndindex(array.shape)]


@given(
    data=st.data(), shape=extents, typestr=st.sampled_from(["<u2", ">f8", "|u1", "|V3", "<M8[s]"])
)
def test_lent_buffers_come_in_exactly_when_the_model_says_so(data, shape, typestr):
    itemsize = np.dtype(typestr).itemsize
    strides = [data.draw(bytes_apart) for _ in shape]
    offset = data.draw(st.one_of(st.integers(0, 4096), st.just(4097), edges))
    described = {
        "shape": tuple(shape),
        "strides": tuple(strides),
        "typestr": typestr,
        "data": BLOCK,
        "offset": offset,
        "version": 3,
    }
    right = fits(shape, strides, itemsize, offset, len(BLOCK))
    event(f"right: {right}")
    if not right:
        with pytest.raises(ValueError, match=r"^AI-\d\d: "):
            gridbuf.as_buffer(Dict(described))
        return
    array = gridbuf.as_numpy(Dict(described))
    assert array.shape == tuple(shape)
    if 0 in shape:
        return
    if math.prod(shape) > 10_000:  # Strides of 0: the corners say enough.
        array = array[tuple(slice(None, None, max(extent - 1, 1)) for extent in shape)]
        strides = [
            stride * max(extent - 1, 1) for extent, stride in zip(shape, strides, strict=True)
        ]
        shape = list(array.shape)
    assert found_elements(array) == elements(BLOCK, shape, strides, offset, itemsize)


@given(
    shape=st.lists(small, max_size=4),
    order=st.randoms(use_true_random=False),
    flip=st.lists(st.booleans()),
)
def test_views_come_in_through_every_interface_alike(shape, order, flip):
    values = np.arange(math.prod(shape), dtype="<i4").reshape(shape)
    axes = list(range(len(shape)))
    order.shuffle(axes)
    view = values.transpose(axes)
    steps = [slice(None, None, -1 if f else 1) for f, _ in zip(flip, shape, strict=False)]
    view = view[(*steps, ...)]

    class Capsules:
        def __dlpack__(self, **keywords: Any) -> Any:
            return view.__dlpack__(**keywords)

        def __dlpack_device__(self) -> tuple[int, int]:
            return (1, 0)

    for producer in (
        view,
        memoryview(view),
        Capsules(),
        Dict(view.__array_interface__),
        Dict(view.__array_struct__, "__array_struct__"),
    ):
        found = gridbuf.as_numpy(producer)
        np.testing.assert_array_equal(found, view)
        assert view.size == 0 or np.shares_memory(found, view)


anything = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(2**70), 2**70),
    st.floats(allow_nan=False),
    st.text(max_size=6),
    st.binary(max_size=6),
    st.lists(st.integers(-2, 5), max_size=3),
    st.tuples(st.integers(-2, 2**65), st.booleans()),
    st.lists(st.tuples(st.text(max_size=2), st.sampled_from(["<f4", "|V8", "x"])), max_size=3),
    st.dictionaries(st.text(max_size=2), st.integers(), max_size=2),
)
keys = [
    "shape",
    "typestr",
    "data",
    "strides",
    "version",
    "descr",
    "offset",
    "mask",
    "stream",
    "dims",
    "halo",
    "acquire",
]


@given(
    changes=st.dictionaries(st.sampled_from(keys), anything, max_size=4),
    name=st.sampled_from(
        ["__array_interface__", "__cuda_array_interface__", "__gt_data_interface__"]
    ),
    device=st.sampled_from([None, "gpu"]),
)
def test_dicts_with_anything_in_them_never_crash(changes, name, device):
    memory = np.arange(12.0).reshape(3, 4)
    described: Any = dict(memory.__array_interface__) | changes
    if "data" in changes and isinstance(changes["data"], tuple) and changes["data"][0] > 0:
        # An address of anywhere cannot be told from a right one: nothing may be read of it.
        described["shape"] = (0,)
    if name == "__gt_data_interface__":
        described = {device: described}
    try:
        buffer = gridbuf.as_buffer(Dict(described, name))
    except (TypeError, ValueError, BufferError, gridbuf.DeviceUnavailableError) as error:
        assert str(error)
        return
    if buffer.device is None:
        buffer.to_numpy().shape


@given(
    shape=st.lists(st.one_of(small, st.integers(-2, -1), edges), max_size=3),
    strides=st.lists(bytes_apart, min_size=3, max_size=3),
    byte_offset=st.one_of(st.integers(0, 64), st.integers(2**64 - 64, 2**64 - 1)),
    code=st.integers(0, 20),
    bits=st.sampled_from([1, 4, 6, 8, 16, 32, 64, 128]),
    lanes=st.integers(0, 2),
    device_type=st.sampled_from([1, 1, 1, 2, 3, 13, 14, 99, -1]),
    version=st.sampled_from([None, (1, 0), (1, 3), (1, 99), (2, 0)]),
    flags=st.integers(0, 15),
)
def test_tensors_with_anything_in_them_are_given_back_once(
    shape, strides, byte_offset, code, bits, lanes, device_type, version, flags
):
    producer = Tensor(
        shape=tuple(shape),
        strides=tuple(strides[: len(shape)]),
        byte_offset=byte_offset,
        code=code,
        bits=bits,
        lanes=lanes,
        device_type=device_type,
        versioned=version is not None,
        major=version[0] if version else 1,
        minor=version[1] if version else 0,
        flags=flags,
    )
    try:
        # Only described, never read: the memory is three doubles.
        buffer = gridbuf.as_buffer(producer)
    except (BufferError, gridbuf.DeviceUnavailableError) as error:
        event(str(error)[:5])
    else:
        event("came in")
        itemsize = (bits * lanes + 7) // 8
        assert buffer.itemsize == itemsize
        assert buffer.shape == tuple(shape)
        del buffer
    assert producer.deleted == len(producer.calls)


@given(
    fields=st.fixed_dictionaries(
        {},
        optional={
            "two": st.integers(-1, 3),
            "nd": st.sampled_from([-1, 0, 1, 65, 2**31 - 1]),
            "typekind": st.sampled_from([b"f", b"i", b"V", b"S", b"U", b"O", b"t", b"?", b"["]),
            "itemsize": st.sampled_from([-8, 0, 1, 3, 4, 7, 8]),
            "flags": st.integers(0, 0x7FF),
        },
    )
)
def test_structs_with_anything_in_them_never_crash(fields):
    producer = Struct(**fields)
    try:
        buffer = gridbuf.as_buffer(producer)
    except (TypeError, ValueError, BufferError):
        return
    assert buffer.ndim in (0, 1)
    assert buffer.readonly == (not producer.struct.flags & 0x400)


def test_the_model_agrees_with_ctypes():
    """The model itself: the elements it names are those that plain address arithmetic finds."""
    start = ctypes.addressof((ctypes.c_char * len(BLOCK)).from_buffer(BLOCK))
    expected = [ctypes.string_at(start + 10 + 6 * i - 2 * j, 2) for i in range(3) for j in range(2)]
    assert elements(BLOCK, [3, 2], [6, -2], 10, 2) == expected
