"""Buffers in pinned, managed and device memory, on the emulated device: their addresses, exports and waits."""

from __future__ import annotations

import copy
import ctypes
import gc
import itertools
import pickle
import sys
import threading
import weakref
import zlib
from collections.abc import Callable, Iterator
from typing import Any

import gridbuf
import gridbuf.testing
import numpy as np
import pytest
from abi import (
    DLTensor,
    ManagedVersioned,
    array_struct,
    consumed,
    device_table,
    exchange_table,
    opened,
)
from reference import address

KINDS = ("host", "pinned", "managed", "device")
OF_THE_DEVICE = ("pinned", "managed", "device")
DLPACK_DEVICE = {"host": (1, 0), "pinned": (3, 0), "managed": (13, 0), "device": (2, 0)}
SHAPE = (3, 4, 5)
VALUES = np.arange(60.0).reshape(SHAPE)

VIEWS: dict[str, Callable[[Any], Any]] = {
    "whole": lambda b: b,
    "transposed": lambda b: b.T if isinstance(b, gridbuf.Buffer) else b.transpose(),
    "reversed": lambda b: b[::-1, :, ::-2],
    "cut": lambda b: b[1:, 1:-1],
    "empty": lambda b: b[:0],
    "one row": lambda b: b[1],
    "one element": lambda b: b[1, 1, 1, ...],
}


@pytest.fixture(autouse=True)
def _emulated() -> Iterator[None]:
    with gridbuf.testing.emulated_device():
        yield
        gc.collect()
        gridbuf.testing.synchronize()


def on_host(**keywords: Any) -> gridbuf.Buffer:
    buffer = gridbuf.allocate(SHAPE, layout=(2, 0, 1), alignment_size=64, **keywords)
    buffer.to_numpy()[...] = VALUES
    return buffer


def example(memory: str) -> gridbuf.Buffer:
    """The values 0, 1, ... in memory of the kind."""
    return on_host().copy(memory=memory)  # type: ignore[arg-type]


def values(buffer: gridbuf.Buffer) -> np.ndarray[Any, Any]:
    return buffer.copy(memory="host").to_numpy()


# ---- The memory of a Buffer. ----


@pytest.mark.parametrize("memory", KINDS)
def test_a_buffer_says_where_it_lies(memory: Any) -> None:
    buffer = gridbuf.allocate(SHAPE, memory=memory)
    assert buffer.memory == memory
    assert buffer.device == ("gpu" if memory in ("managed", "device") else None)
    assert buffer.stream == (None if memory == "host" else 1)
    assert buffer.__dlpack_device__() == DLPACK_DEVICE[memory]
    text = repr(buffer)
    assert ("emulated" in text) == (memory != "host")
    assert f"memory={memory}" in text
    assert buffer[1].memory == memory and buffer.T.stream == buffer.stream


@pytest.mark.parametrize("memory", KINDS)
def test_every_memory_has_the_plan_of_the_request(memory: Any) -> None:
    request = {"layout": (1, 2, 0), "alignment_size": 96, "aligned_index": (1, 2, 3)}
    buffer = gridbuf.allocate(SHAPE, memory=memory, **request)
    assert buffer.plan == gridbuf.plan(SHAPE, **request)
    start = opened(capsule := buffer.__dlpack__(stream=None)).tensor.data
    assert (start + buffer.plan.aligned_offset) % 96 == 0
    del capsule


@pytest.mark.parametrize(
    ("keywords", "memory"),
    [
        ({}, "host"),
        ({"device": "gpu"}, "device"),
        ({"device": None}, "host"),
        ({"backend": "gt:gpu"}, "device"),
        ({"backend": "gt:gpu", "device": None}, "host"),
        ({"backend": "gt:gpu", "memory": "pinned"}, "pinned"),
        ({"backend": "gt:cpu_ifirst", "device": "gpu"}, "device"),
        ({"device": "gpu", "memory": "managed"}, "managed"),
        ({"device": "gpu", "memory": "device"}, "device"),
        ({"device": None, "memory": "pinned"}, "pinned"),
        ({"device": None, "memory": "host"}, "host"),
        ({"memory": None}, "host"),
    ],
)
def test_memory_and_device_are_one_answer(keywords: dict[str, Any], memory: str) -> None:
    assert gridbuf.allocate(SHAPE, **keywords).memory == memory


@pytest.mark.parametrize(
    ("keywords", "error"),
    [
        ({"device": "gpu", "memory": "host"}, ValueError),
        ({"device": "gpu", "memory": "pinned"}, ValueError),
        ({"device": None, "memory": "managed"}, ValueError),
        ({"device": None, "memory": "device"}, ValueError),
        ({"memory": "gpu"}, ValueError),
        ({"memory": ""}, ValueError),
        ({"memory": 3}, TypeError),
        ({"memory": b"host"}, TypeError),
    ],
)
def test_contradictions_and_unknown_kinds_are_errors(keywords: Any, error: Any) -> None:
    for function in (gridbuf.allocate, gridbuf.zeros, gridbuf.plan):
        with pytest.raises(error, match="memory|device"):
            function(SHAPE, **keywords)


@pytest.mark.parametrize("memory", ["pinned", "managed"])
def test_plain_arrays_in_memory_of_both_sides_are_ndarrays(memory: Any) -> None:
    array = gridbuf.full(SHAPE, 2.5, memory=memory)
    assert type(array) is np.ndarray and (array == 2.5).all()
    assert array.base.memory == memory
    assert (gridbuf.zeros(SHAPE, memory=memory) == 0).all()
    like = gridbuf.empty_like(array)
    assert like.base.memory == memory  # What is not given is taken from data.
    assert gridbuf.empty_like(array, memory="host").base.memory == "host"
    np.testing.assert_array_equal(gridbuf.from_array(VALUES, memory=memory), VALUES)
    np.testing.assert_array_equal(gridbuf.from_array(example("device"), memory=memory), VALUES)


def test_plain_arrays_of_the_gpu_are_cupys_which_does_not_know_the_emulated_device() -> None:
    for make in (
        lambda: gridbuf.empty(SHAPE, device="gpu"),
        lambda: gridbuf.zeros(SHAPE, backend="gt:gpu"),
        lambda: gridbuf.full(SHAPE, 1, memory="device"),
        lambda: gridbuf.empty_like(example("device")),
        lambda: gridbuf.from_array(VALUES, device="gpu"),
    ):
        with pytest.raises(gridbuf.DeviceUnavailableError, match="emulated device"):
            make()


def test_without_a_device_the_error_says_what_was_looked_for() -> None:
    with gridbuf.testing.emulated_device(False):
        try:
            gridbuf.allocate(SHAPE, memory="device")
        except gridbuf.DeviceUnavailableError as error:
            assert "CUDA" in str(error)
        else:
            pytest.skip("there is a CUDA device")
        with pytest.raises(gridbuf.DeviceUnavailableError, match="cupy"):
            gridbuf.empty(SHAPE, device="gpu")


# ---- Copies between kinds. ----


@pytest.mark.parametrize(("source", "target"), itertools.product(KINDS, KINDS))
@pytest.mark.parametrize("view", VIEWS)
def test_a_copy_has_the_elements_and_parameters_in_any_memory(
    source: str, target: Any, view: str
) -> None:
    buffer = VIEWS[view](example(source))
    copied = buffer.copy(memory=target)
    assert copied.memory == target
    assert (copied.shape, copied.dims, copied.layout, copied.aligned_index) == (
        buffer.shape,
        buffer.dims,
        buffer.layout,
        buffer.aligned_index,
    )
    np.testing.assert_array_equal(values(copied), VIEWS[view](VALUES))


@pytest.mark.parametrize("memory", KINDS)
def test_copies_and_pickles_stay_in_their_memory(memory: str) -> None:
    buffer = example(memory)
    assert copy.copy(buffer).memory == copy.deepcopy(buffer).memory == memory
    for protocol in range(pickle.HIGHEST_PROTOCOL + 1):
        restored = pickle.loads(pickle.dumps(buffer[1:], protocol))
        assert restored.memory == memory
        np.testing.assert_array_equal(values(restored), VALUES[1:])


def test_an_element_of_the_device_comes_to_the_host() -> None:
    buffer = example("device")
    assert buffer[2, 3, 4] == 59.0
    assert isinstance(buffer[0, 0, 1], np.float64)
    assert [row[0, 0] for row in buffer] == [0.0, 20.0, 40.0]


# ---- Exports. ----


@pytest.mark.parametrize("memory", KINDS)
def test_probes_answer_and_never_raise(memory: str) -> None:
    buffer = example(memory)
    host = memory != "device"
    device = memory != "host"
    assert hasattr(buffer, "__array_interface__") == host
    assert hasattr(buffer, "__array_struct__") == host
    assert hasattr(buffer, "__cuda_array_interface__") == device
    assert set(buffer.__gt_data_interface__) == ({None} if host else set()) | (
        {"gpu"} if device and memory != "host" else set()
    )


def test_memory_of_the_device_is_not_shown_to_the_host() -> None:
    buffer = example("device")
    for look in (memoryview, np.asarray, gridbuf.Buffer.to_numpy, lambda b: b.__array__()):
        with pytest.raises(gridbuf.GTNoSuchBufferError):
            look(buffer)


@pytest.mark.parametrize("memory", ["pinned", "managed"])
@pytest.mark.parametrize("view", VIEWS)
def test_memory_of_both_sides_agrees_with_itself(memory: str, view: str) -> None:
    buffer = VIEWS[view](example(memory))
    array = np.asarray(buffer)
    np.testing.assert_array_equal(array, VIEWS[view](VALUES))
    host, cuda = buffer.__array_interface__, buffer.__cuda_array_interface__
    assert (host["shape"], host["typestr"], host["strides"]) == (
        cuda["shape"],
        cuda["typestr"],
        cuda["strides"],
    )
    assert cuda["data"][0] == (host["data"][0] if buffer.size else 0)


@pytest.mark.parametrize("memory", OF_THE_DEVICE)
@pytest.mark.parametrize("view", VIEWS)
def test_the_cuda_array_interface_has_the_fields_of_version_3(memory: str, view: str) -> None:
    buffer = VIEWS[view](example(memory))
    found = buffer.__cuda_array_interface__
    assert found["version"] == 3
    assert found["shape"] == buffer.shape
    assert found["typestr"] == "<f8"
    assert found["stream"] == buffer.stream == 1
    tensor = opened(capsule := buffer.__dlpack__()).tensor
    assert found["data"] == (tensor.data or 0, False)
    strides = found["strides"]
    if strides is not None:
        assert strides == buffer.strides
    elif buffer.size:
        assert VIEWS[view](on_host()).to_numpy().flags.c_contiguous
    del capsule


@pytest.mark.parametrize("memory", OF_THE_DEVICE)
def test_readonly_is_told_on_the_device_too(memory: str) -> None:
    view = example(memory).toreadonly()
    assert view.__cuda_array_interface__["data"][1] is True
    assert view.__gt_data_interface__["gpu"]["data"][1] is True
    with pytest.raises(BufferError):
        view.__dlpack__()
    assert opened(view.__dlpack__(max_version=(1, 0))).flags & 1  # type: ignore[union-attr]


@pytest.mark.parametrize("memory", KINDS)
def test_the_array_struct_says_what_the_array_interface_says(memory: str) -> None:
    for name, view in VIEWS.items():
        buffer = view(example(memory))
        if memory == "device":
            assert not hasattr(buffer, "__array_struct__")
            continue
        found = array_struct(capsule := buffer.__array_struct__)
        assert found.entries("shape") == buffer.shape, name
        assert found.entries("strides") == buffer.strides
        if buffer.size:
            assert found.data == address(buffer)
        del capsule


@pytest.mark.parametrize("memory", KINDS)
def test_the_data_interface_has_an_entry_for_each_side(memory: str) -> None:
    buffer = example(memory).T
    for side, entry in buffer.__gt_data_interface__.items():
        assert entry["shape"] == buffer.shape and entry["strides"] == buffer.strides
        assert entry["dims"] == ("K", "J", "I") and entry["halo"] == ((0, 0),) * 3
        assert entry["typestr"] == "<f8" and entry["version"] == 3
        assert ("stream" in entry) == (side == "gpu")
        assert ("acquire" in entry) == (side is None and memory != "host")
        if "acquire" in entry:
            assert entry["acquire"]() is None
        assert "touch" not in entry and "release" not in entry


@pytest.mark.parametrize("memory", KINDS)
@pytest.mark.parametrize("max_version", [None, (1, 0), (1, 3)])
@pytest.mark.parametrize("copied", [None, True, False])
@pytest.mark.parametrize("to_host", [False, True])
def test_dlpack_with_every_keyword(
    memory: str, max_version: Any, copied: bool | None, to_host: bool
) -> None:
    buffer = example(memory)
    keywords = {"max_version": max_version, "copy": copied}
    if to_host:
        keywords["dl_device"] = (1, 0)
    if memory == "device" and to_host and copied is False:
        with pytest.raises(BufferError, match="copy"):
            buffer.__dlpack__(**keywords)
        return
    struct = opened(capsule := buffer.__dlpack__(**keywords))
    tensor = struct.tensor
    assert (tensor.device_type, tensor.device_id) == ((1, 0) if to_host else DLPACK_DEVICE[memory])
    shared = opened(own := buffer.__dlpack__()).tensor.data == tensor.data
    made_copy = copied is True or (to_host and memory == "device")
    assert shared != made_copy
    if max_version is not None:
        assert bool(struct.flags & 2) == made_copy  # type: ignore[union-attr]
    if to_host or memory != "device":
        stride = tensor.entries("strides")
        element = ctypes.c_double.from_address(
            tensor.data + 8 * (2 * stride[0] + 3 * stride[1] + 4 * stride[2])
        )
        assert element.value == 59.0
    del capsule, own


@pytest.mark.parametrize("memory", OF_THE_DEVICE)
@pytest.mark.parametrize("stream", [0, -2, "1", 1.0, True])
def test_streams_that_are_none_are_refused(memory: str, stream: Any) -> None:
    with pytest.raises((ValueError, TypeError)):
        example(memory).__dlpack__(stream=stream)


def test_a_dead_stream_is_a_value_error() -> None:
    stream = gridbuf.testing.create_stream()
    gridbuf.testing.destroy_stream(stream)
    with pytest.raises(ValueError, match="stream"):
        example("device").__dlpack__(stream=stream)


# ---- Waits. ----


def slow_fill(buffer: gridbuf.Buffer, byte: int, stream: int) -> None:
    """Writes `byte` to the whole buffer, late, on the stream."""
    start = opened(capsule := buffer.__dlpack__(stream=-1)).tensor.data
    device_table().slow_fill(start, byte, buffer.nbytes, 20, stream)
    del capsule


@pytest.mark.parametrize("memory", ["pinned", "managed"])
@pytest.mark.parametrize(
    "look",
    [
        np.asarray,
        memoryview,
        lambda b: b.to_numpy(),
        lambda b: b.__array_interface__,
        lambda b: b.__array_struct__,
        lambda b: b.__dlpack__(dl_device=(1, 0)),
        lambda b: b.__gt_data_interface__[None]["acquire"](),
        lambda b: b.copy(memory="host"),
        lambda b: b[0],
        lambda b: b.synchronize(),
    ],
)
def test_the_host_sees_what_the_buffers_stream_has_written(memory: Any, look: Any) -> None:
    buffer = gridbuf.allocate((64,), "u1", memory=memory)
    array = buffer.to_numpy()
    array[...] = 0
    slow_fill(buffer, 7, buffer.stream or 0)
    look(buffer)
    assert (array == 7).all()


def test_a_consumers_stream_waits_for_the_buffers() -> None:
    own, other = gridbuf.testing.create_stream(), gridbuf.testing.create_stream()
    with gridbuf.stream(own):
        buffer = gridbuf.allocate((64,), "u1", memory="device")
    assert buffer.stream == own == buffer.__cuda_array_interface__["stream"]
    slow_fill(buffer, 9, own)
    target = gridbuf.allocate((64,), "u1", memory="pinned")
    target.to_numpy()[...] = 0
    tensor = opened(capsule := buffer.__dlpack__(stream=other)).tensor
    table = device_table()
    table.copy(address(target), tensor.data, 64, other)  # Waits for `other` alone.
    assert (target.to_numpy() == 9).all()
    del capsule, buffer, target
    gridbuf.testing.synchronize()
    gridbuf.testing.destroy_stream(own)
    gridbuf.testing.destroy_stream(other)


def test_the_exchange_table_orders_work_before_the_current_stream() -> None:
    table = exchange_table(gridbuf.Buffer)
    own, other = gridbuf.testing.create_stream(), gridbuf.testing.create_stream()
    with gridbuf.stream(own):
        buffer = gridbuf.allocate((64,), "u1", memory="device")
    slow_fill(buffer, 5, own)
    target = gridbuf.allocate((64,), "u1", memory="pinned")
    with gridbuf.stream(other):
        current = ctypes.c_void_p()
        assert table.stream(2, 0, ctypes.byref(current)) == 0
        assert current.value == other
        tensor = DLTensor()
        assert table.borrow(buffer, ctypes.byref(tensor)) == 0
    device_table().copy(address(target), tensor.data, 64, other)
    assert (target.to_numpy() == 5).all()
    del buffer, target
    gridbuf.testing.synchronize()
    gridbuf.testing.destroy_stream(own)
    gridbuf.testing.destroy_stream(other)


@pytest.mark.parametrize("memory", OF_THE_DEVICE)
def test_the_exchange_table_carries_all_memories(memory: str) -> None:
    table = exchange_table(gridbuf.Buffer)
    buffer = example(memory)
    out, back = ctypes.c_void_p(), ctypes.py_object()
    assert table.from_object(buffer, ctypes.byref(out)) == 0
    managed = ManagedVersioned.from_address(out.value or 0)
    assert (managed.tensor.device_type, managed.tensor.device_id) == DLPACK_DEVICE[memory]
    assert table.to_object(ctypes.addressof(managed), ctypes.byref(back)) == 0
    result = back.value
    ctypes.pythonapi.Py_DecRef(ctypes.py_object(result))
    assert result.memory == memory and result.stream == 1
    del buffer
    np.testing.assert_array_equal(values(result), VALUES)


# ---- The switch. ----


@pytest.mark.parametrize("memory", OF_THE_DEVICE)
def test_emulated_memory_is_no_cuda_memory_once_the_device_is_off(memory: str) -> None:
    buffer = example(memory)
    with gridbuf.testing.emulated_device(False):
        assert not hasattr(buffer, "__cuda_array_interface__")
        with pytest.raises(BufferError, match="switched off"):
            buffer.__dlpack__()
        np.testing.assert_array_equal(values(buffer), VALUES)  # Its own driver still copies it.
    assert hasattr(buffer, "__cuda_array_interface__")


# ---- Lifetimes. ----


@pytest.mark.parametrize("memory", OF_THE_DEVICE)
def test_every_order_of_dropping_gives_everything_back(memory: str) -> None:
    gc.collect()
    gridbuf.testing.synchronize()
    before = gridbuf.testing.statistics()["live_blocks"]
    for order in itertools.permutations(range(4)):
        buffer = example(memory)
        holders: list[Any] = [buffer, buffer[1:], buffer.__dlpack__(), buffer.copy()]
        del buffer
        for position in order:
            holders[position] = None
        gc.collect()
        assert gridbuf.testing.statistics()["live_blocks"] == before, order


@pytest.mark.parametrize("memory", OF_THE_DEVICE)
def test_a_deleter_runs_on_a_foreign_thread(memory: str) -> None:
    before = gridbuf.testing.statistics()["live_blocks"]
    buffer = example(memory)
    struct = consumed(buffer.__dlpack__())
    gone = weakref.ref(buffer)
    del buffer
    gc.collect()
    assert gone() is None
    assert gridbuf.testing.statistics()["live_blocks"] == before + 1
    thread = threading.Thread(target=lambda: struct.deleter(ctypes.addressof(struct)))
    thread.start()
    thread.join()
    assert gridbuf.testing.statistics()["live_blocks"] == before


@pytest.mark.parametrize("memory", OF_THE_DEVICE)
def test_failures_of_the_device_are_exceptions_and_leave_nothing(memory: Any) -> None:
    source = on_host()
    before = gridbuf.testing.statistics()["live_blocks"]
    for call in range(1, 12):
        for operation in ("allocate", "copy", "fill", "synchronize", "order"):
            with gridbuf.testing.failing(operation, call=call):
                try:
                    source.copy(memory=memory).copy(memory="host")
                except (MemoryError, RuntimeError):
                    gc.collect()
    gridbuf.testing.synchronize()
    assert gridbuf.testing.statistics()["live_blocks"] == before
    np.testing.assert_array_equal(values(example(memory)), VALUES)


def test_a_full_device_is_a_memory_error_that_says_so() -> None:
    with gridbuf.testing.limited(1 << 20), pytest.raises(MemoryError) as caught:
        gridbuf.allocate((1024, 1024), memory="device", layout=(1, 0))
    text = str(caught.value)
    assert "memory device" in text and "(1024, 1024)" in text and "float64" in text


def test_two_threads_that_ask_with_other_flags_get_their_own_answers() -> None:
    """Waiting for the stream gives the GIL away in the middle of a request."""
    buffer = gridbuf.allocate((3, 63), memory="pinned")
    stop = threading.Event()

    def ask_without_a_shape() -> None:
        while not stop.is_set():
            zlib.crc32(buffer)

    threads = [threading.Thread(target=ask_without_a_shape) for _ in range(2)]
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        for thread in threads:
            thread.start()
        shapes = {memoryview(buffer).shape for _ in range(20_000)}
    finally:
        stop.set()
        sys.setswitchinterval(interval)
        for thread in threads:
            thread.join()
    assert shapes == {(3, 63)}
