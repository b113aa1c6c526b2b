"""Elements with gaps: no front end writes a byte that belongs to no field, in host memory or on a device (5.59).

The reference is NumPy on the same bytes. Gaps of the target hold a canary before, those of the source another value.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import gridbuf
import gridbuf.storage
import gridbuf.testing
import numpy as np
import pytest

CANARY = 0xEE

ALIGNED = np.dtype([("a", "u1"), ("b", "f4")], align=True)
TYPES = {
    "multi-field view": np.dtype([("a", "u1"), ("b", "u1"), ("c", "u1")])[["a", "c"]],
    "aligned": ALIGNED,
    "nested": np.dtype([("x", ALIGNED), ("y", "u1")]),
    "subarray": np.dtype([("x", ALIGNED, (2, 3)), ("y", "u1"), ("z", [("a", ALIGNED, (2,))])]),
    "overlapping": np.dtype({"names": ["a", "b"], "formats": ["i4", "u2"], "offsets": [1, 3], "itemsize": 9}),
    "titles": np.dtype({"names": ["a"], "formats": ["u2"], "offsets": [1], "itemsize": 4, "titles": ["A"]}),
    "empty": np.dtype({"names": [], "formats": [], "itemsize": 5}),
    "without gaps": np.dtype([("a", "u1"), ("b", "f8"), ("c", "V3")]),
}  # fmt: skip
SHAPE = (3, 4)
MASK = np.arange(12).reshape(SHAPE) % 3 == 0


def filled(dtype: np.dtype[Any], byte: int | None = None, shape: tuple[int, ...] = SHAPE) -> Any:
    """An array in every byte of which is `byte`; without one, all different."""
    count = dtype.itemsize * int(np.prod(shape))
    raw = np.arange(count) % 113 if byte is None else np.full(count, byte)
    return raw.astype(np.uint8).view(dtype).reshape(shape)


def raw(array: np.ndarray) -> bytes:
    return array.reshape(-1).view(np.uint8).tobytes()


def storage_over(array: Any) -> Any:
    return gridbuf.storage.as_storage(array, dims="IJ")


def buffer_over(array: Any) -> Any:
    return gridbuf.as_buffer(array)


Writer = Callable[[Any, Any], object]
WRITERS: dict[str, tuple[Writer, Writer]] = {
    "copyto": (gridbuf.copyto, np.copyto),
    "copyto where": (
        lambda t, s: gridbuf.copyto(t, s, where=MASK),
        lambda t, s: np.copyto(t, s, where=MASK),
    ),
    "copyto scalar": (lambda t, s: gridbuf.copyto(t, s[1, 1]), lambda t, s: np.copyto(t, s[1, 1])),
    "copyto transposed": (
        lambda t, s: gridbuf.copyto(t.T[::-1], s.T),
        lambda t, s: np.copyto(t.T[::-1], s.T),
    ),
    "copyto overlapping": (
        lambda t, s: gridbuf.copyto(t[:, 1:], t[:, :-1]),
        lambda t, s: np.copyto(t[:, 1:], t[:, :-1]),
    ),
    "Buffers": (lambda t, s: gridbuf.copyto(buffer_over(t), buffer_over(s)), np.copyto),
    "storage = array": (lambda t, s: storage_over(t).__setitem__(..., s), np.copyto),
    "storage = storage": (lambda t, s: storage_over(t).__setitem__(..., storage_over(s)), np.copyto),
    "storage[0] = element": (
        lambda t, s: storage_over(t).__setitem__(0, s[1, 1]),
        lambda t, s: t.__setitem__(0, s[1, 1]),
    ),
    "storage.fill": (
        lambda t, s: storage_over(t).fill(s[1, 1]),
        lambda t, s: np.copyto(t, s[1, 1]),
    ),
    "copyto storages": (lambda t, s: gridbuf.copyto(storage_over(t), storage_over(s)), np.copyto),
    "copyto storages where": (
        lambda t, s: gridbuf.copyto(storage_over(t), storage_over(s), where=MASK),
        lambda t, s: np.copyto(t, s, where=MASK),
    ),
}  # fmt: skip


@pytest.mark.parametrize("writer", WRITERS)
@pytest.mark.parametrize("name", TYPES)
def test_writers_touch_no_gap(name: str, writer: str) -> None:
    written, expected = filled(TYPES[name], CANARY), filled(TYPES[name], CANARY)
    ours, numpys = WRITERS[writer]
    ours(written, filled(TYPES[name]))
    numpys(expected, filled(TYPES[name]))
    assert raw(written) == raw(expected)


def test_casts_between_records_touch_no_gap() -> None:
    target = filled(TYPES["nested"], CANARY)
    expected = target.copy()
    expected.view(np.uint8)[...] = CANARY
    other = np.dtype([("x", [("a", "i2"), ("b", "f8")]), ("y", "i4")])
    source = np.zeros(SHAPE, other)
    source["x"]["b"] = 2.5
    gridbuf.copyto(target, source, casting="unsafe")
    np.copyto(expected, source, casting="unsafe")
    assert raw(target) == raw(expected)


MAKERS: dict[str, Callable[[Any], Any]] = {
    "from_array": gridbuf.from_array,
    "from_array, other layout": lambda s: gridbuf.from_array(s, layout=(1, 0)),
    "Buffer.copy": lambda s: buffer_over(s).copy().to_numpy(),
    "full": lambda s: gridbuf.full(SHAPE, s[1, 1], s.dtype),
    "full_like": lambda s: gridbuf.full_like(s, s[1, 1]),
    "storage": lambda s: gridbuf.storage.storage(s, dims="IJ").to_numpy(),
    "storage.copy": lambda s: storage_over(s).copy().to_numpy(),
    "storage.full": lambda s: gridbuf.storage.full(SHAPE, s[1, 1], s.dtype, dims="IJ").to_numpy(),
}


@pytest.mark.parametrize("maker", MAKERS)
@pytest.mark.parametrize("name", TYPES)
def test_new_arrays_have_zeros_in_their_gaps(name: str, maker: str) -> None:
    """Neither bytes that the source's type leaves out nor those of freed memory."""
    dtype = TYPES[name]
    source = filled(dtype)
    freed = [np.full(SHAPE + (dtype.itemsize,), CANARY, np.uint8) for _ in range(8)]
    del freed
    made = MAKERS[maker](source)
    values = np.broadcast_to(source[1, 1], SHAPE) if "full" in maker else source
    if not made.flags.c_contiguous:
        made, values = made.T, values.T
    expected = filled(dtype, 0, made.shape)
    np.copyto(expected, values)
    assert raw(made) == raw(expected)


# ---- Devices. ----


@pytest.fixture
def device() -> Iterator[None]:
    with gridbuf.testing.emulated_device():
        yield


def bytes_of(buffer: Any) -> bytes:
    """All bytes of a Buffer's elements, wherever it is."""
    plain = np.dtype(f"V{buffer.itemsize}")
    array = buffer.to_numpy() if buffer.memory != "device" else None
    if array is not None:
        return raw(array)
    descriptor = dict(buffer.__cuda_array_interface__, typestr=plain.str)
    descriptor.pop("descr", None)
    return raw(gridbuf.from_interface(descriptor, buffer).copy(memory="host").to_numpy())


def with_canaries(dtype: np.dtype[Any], memory: str) -> Any:
    """A Buffer in which each byte is the canary."""
    made = gridbuf.allocate(SHAPE, dtype, memory=memory)
    if memory != "device":
        made.to_numpy().view(np.uint8)[...] = CANARY
        return made
    descriptor = dict(made.__cuda_array_interface__, typestr=f"|V{dtype.itemsize}")
    descriptor.pop("descr", None)
    plain = gridbuf.from_interface(descriptor, made)
    gridbuf.copyto(plain, filled(np.dtype(f"V{dtype.itemsize}"), CANARY))
    return made


@pytest.mark.parametrize("source", ["host", "pinned", "managed", "device", "element", "overlap"])
@pytest.mark.parametrize("target", ["host", "pinned", "managed", "device"])
@pytest.mark.parametrize("name", TYPES)
def test_copies_between_all_memory_touch_no_gap(
    device: None, name: str, target: str, source: str
) -> None:
    dtype = TYPES[name]
    written, expected = with_canaries(dtype, target), filled(dtype, CANARY)
    values = filled(dtype)
    if source == "element":
        gridbuf.copyto(written, values[1, 1])
        np.copyto(expected, values[1, 1])
    elif source == "overlap":
        gridbuf.copyto(written[:, 1:], written[:, :-1])
    else:
        gridbuf.copyto(written, gridbuf.from_array(values).base.copy(memory=source))
        np.copyto(expected, values)
    assert bytes_of(written) == raw(expected)


@pytest.mark.parametrize("name", TYPES)
def test_a_storage_that_returns_from_the_device_touches_no_gap(device: None, name: str) -> None:
    dtype = TYPES[name]
    memory = filled(dtype, 0)
    storage = gridbuf.storage.as_storage(memory, dims="IJ", device="gpu")
    storage.host_to_device()
    memory.view(np.uint8)[...] = CANARY
    storage.set_device_modified()
    storage.device_to_host()
    expected = filled(dtype, CANARY)
    np.copyto(expected, filled(dtype, 0))
    assert raw(memory) == raw(expected)


@pytest.mark.parametrize("shape", [(300, 700), (5,), (), (0, 3), (1,) * 60])
def test_arrays_of_every_size(shape: tuple[int, ...]) -> None:
    dtype = TYPES["subarray"]
    written, expected = filled(dtype, CANARY, shape), filled(dtype, CANARY, shape)
    gridbuf.copyto(written, filled(dtype, None, shape))
    np.copyto(expected, filled(dtype, None, shape))
    assert raw(written) == raw(expected)
