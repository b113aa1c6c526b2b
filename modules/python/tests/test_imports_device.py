"""Memory of a device comes in: on the emulated one here, on CUDA where there is a GPU and CuPy."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from typing import Any

import abi
import numpy as np
import pytest
from exporters import Dict, Tensor

import gridbuf
import gridbuf.testing


@pytest.fixture
def emulated() -> Iterator[None]:
    with gridbuf.testing.emulated_device():
        yield


class OnlyCai:
    """A device array that offers the CUDA array interface alone, as Numba's do."""

    def __init__(self, buffer: gridbuf.Buffer, **changes: Any) -> None:
        self.buffer = buffer
        self.changes = changes

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        return self.buffer.__cuda_array_interface__ | self.changes


class OnlyDlpack:
    def __init__(self, buffer: gridbuf.Buffer) -> None:
        self.buffer = buffer
        self.streams: list[int | None] = []

    def __dlpack__(self, *, stream: int | None = None, **keywords: Any) -> Any:
        self.streams.append(stream)
        return self.buffer.__dlpack__(stream=stream, **keywords)

    def __dlpack_device__(self) -> tuple[int, int]:
        return self.buffer.__dlpack_device__()


class OnlyEntry:
    def __init__(self, buffer: gridbuf.Buffer) -> None:
        self.buffer = buffer

    @property
    def __gt_data_interface__(self) -> dict[Any, Any]:
        return {"gpu": self.buffer.__gt_data_interface__["gpu"]}


def device_values() -> tuple[np.ndarray[Any, Any], gridbuf.Buffer]:
    values = np.arange(12.0).reshape(3, 4)
    return values, gridbuf.as_buffer(values).copy(memory="device")


DOORS = [OnlyCai, OnlyDlpack, OnlyEntry]


@pytest.mark.usefixtures("emulated")
@pytest.mark.parametrize("door", DOORS)
def test_device_memory_comes_in_and_its_elements_are_right(door):
    values, buffer = device_values()
    taken = gridbuf.as_buffer(door(buffer))
    assert taken.memory == "device"
    assert taken.device == "gpu"
    assert taken.shape == (3, 4)
    np.testing.assert_array_equal(taken.copy(memory="host").to_numpy(), values)
    ours = taken.__cuda_array_interface__["data"]
    assert ours == buffer.__cuda_array_interface__["data"]


@pytest.mark.usefixtures("emulated")
@pytest.mark.parametrize("door", DOORS)
def test_the_host_gets_no_view_of_it_but_a_copy(door):
    values, buffer = device_values()
    with pytest.raises(gridbuf.GTNoSuchBufferError):
        gridbuf.as_numpy(door(buffer))
    np.testing.assert_array_equal(gridbuf.from_array(door(buffer), device=None), values)


@pytest.mark.usefixtures("emulated")
@pytest.mark.parametrize("memory", ["managed", "pinned"])
def test_memory_of_both_sides_comes_in_for_the_host(memory):
    values, _ = device_values()
    buffer = gridbuf.as_buffer(values).copy(memory=memory)
    for door in (OnlyDlpack, OnlyCai):
        taken = gridbuf.as_buffer(door(buffer))
        assert taken.memory == memory
        np.testing.assert_array_equal(gridbuf.as_numpy(door(buffer)), values)


@pytest.mark.usefixtures("emulated")
def test_the_memory_lives_as_long_as_its_import():
    gc.collect()
    live = gridbuf.testing.statistics()["live_blocks"]
    values, buffer = device_values()
    taken = gridbuf.as_buffer(OnlyCai(buffer))
    del buffer
    gc.collect()
    np.testing.assert_array_equal(taken.copy(memory="host").to_numpy(), values)
    del taken
    gc.collect()
    assert gridbuf.testing.statistics()["live_blocks"] == live


@pytest.mark.usefixtures("emulated")
def test_dp_19_the_producer_is_told_the_stream_that_will_be_used():
    _, buffer = device_values()
    producer = OnlyDlpack(buffer)
    gridbuf.as_buffer(producer)
    stream = gridbuf.testing.create_stream()
    with gridbuf.stream(stream):
        gridbuf.as_buffer(producer)
    assert producer.streams == [1, stream]


@pytest.mark.usefixtures("emulated")
def test_cai_20_work_on_the_exported_stream_is_waited_for():
    values, buffer = device_values()
    stream = gridbuf.testing.create_stream()
    start = buffer.__cuda_array_interface__["data"][0]
    table = abi.device_table()
    table.slow_fill(start, 0x7F, values.nbytes, 30, stream)
    taken = gridbuf.as_buffer(OnlyCai(buffer, stream=stream))
    found = taken.copy(memory="host").to_numpy()
    assert found.tobytes() == b"\x7f" * values.nbytes


@pytest.mark.usefixtures("emulated")
def test_sync_false_does_not_wait():
    values, buffer = device_values()
    described = buffer.__cuda_array_interface__
    stream = gridbuf.testing.create_stream()
    start = described["data"][0]
    abi.device_table().slow_fill(start, 0x7F, values.nbytes, 30, stream)
    late = gridbuf.from_interface(described | {"stream": stream}, buffer, sync=False)
    np.testing.assert_array_equal(late.copy(memory="host").to_numpy(), values)
    gridbuf.testing.synchronize()


CAI_CASES = {
    "CAI-02": ({"version": None}, TypeError),
    "CAI-03": ({"shape": [3, 4]}, TypeError),
    "CAI-04": ({"typestr": "bfloat16"}, ValueError),
    "CAI-05": ({"data": (None, False)}, TypeError),
    "CAI-07": ({"data": (0, False)}, ValueError),
    "CAI-09": ({"version": 4}, ValueError),
    "CAI-11": ({"strides": [32, 8]}, TypeError),
    "CAI-12": ({"strides": (1 << 20, 8)}, ValueError),
    "CAI-14": ({"descr": [("", "<f4")]}, ValueError),
    "CAI-15": ({"mask": np.zeros(3)}, BufferError),
    "CAI-16": ({"stream": 0}, ValueError),
    "CAI-17": ({"stream": -1}, ValueError),
}


@pytest.mark.usefixtures("emulated")
@pytest.mark.parametrize("rule", CAI_CASES)
def test_cuda_array_interface_rule_is_named(rule):
    changes, exception = CAI_CASES[rule]
    _, buffer = device_values()
    # A version of None is not an int (CAI-09); only a missing key is CAI-02.
    expected = "CAI-09" if rule == "CAI-02" else rule
    with pytest.raises(exception, match=f"^{expected}: "):
        gridbuf.as_buffer(OnlyCai(buffer, **changes))


@pytest.mark.usefixtures("emulated")
def test_cai_01_02_05_07_and_17():
    _, buffer = device_values()
    with pytest.raises(TypeError, match="^CAI-01: "):
        gridbuf.as_buffer(Dict([1], "__cuda_array_interface__"))
    described = dict(buffer.__cuda_array_interface__)
    del described["version"]
    with pytest.raises(ValueError, match="^CAI-02: "):
        gridbuf.from_interface(described, buffer)
    host = np.arange(12.0)
    described = buffer.__cuda_array_interface__ | {"data": (host.ctypes.data, False)}
    with pytest.raises(BufferError, match="^CAI-07: "):
        gridbuf.from_interface(described, host)
    freed = gridbuf.testing.create_stream()
    gridbuf.testing.destroy_stream(freed)
    with pytest.raises(ValueError, match="CAI-17"):
        gridbuf.as_buffer(OnlyCai(buffer, stream=freed))


@pytest.mark.usefixtures("emulated")
def test_cai_10_all_spellings_of_strides():
    values, buffer = device_values()
    for strides in (None, (32, 8)):
        taken = gridbuf.as_buffer(OnlyCai(buffer, strides=strides))
        np.testing.assert_array_equal(taken.copy(memory="host").to_numpy(), values)
    column = OnlyCai(buffer, shape=(3,), strides=(32,))  # CAI-13
    found = gridbuf.as_buffer(column).copy(memory="host").to_numpy()
    np.testing.assert_array_equal(found, values[:, 0])


@pytest.mark.usefixtures("emulated")
def test_cai_06_and_08_empty_and_read_only():
    _, buffer = device_values()
    assert gridbuf.as_buffer(OnlyCai(buffer[:, 4:])).size == 0
    assert gridbuf.as_buffer(OnlyCai(buffer.toreadonly())).readonly


def test_without_a_device_it_says_what_was_looked_for():
    described = {"shape": (3,), "typestr": "<f8", "data": (4096, False), "version": 3, "stream": 1}
    if gridbuf_has_device():
        pytest.skip("there is a device on this machine")
    with pytest.raises(gridbuf.DeviceUnavailableError):
        gridbuf.as_buffer(Dict(described, "__cuda_array_interface__"))
    producer = Tensor(device_type=2)
    with pytest.raises(gridbuf.DeviceUnavailableError):
        gridbuf.as_buffer(producer)
    gc.collect()
    assert producer.deleted == len(producer.calls)


@pytest.mark.usefixtures("emulated")
def test_as_cupy_is_not_for_the_emulated_device():
    _, buffer = device_values()
    with pytest.raises(gridbuf.DeviceUnavailableError, match="emulated"):
        gridbuf.as_cupy(buffer)


def test_round_trip_with_cupy():
    cupy = pytest.importorskip("cupy", reason="CuPy is not installed: as_cupy was not run here")
    if not gridbuf_has_device():
        pytest.skip("no CUDA device: as_cupy was not run here")
    values = cupy.arange(12.0).reshape(3, 4)[::-1, ::2]
    buffer = gridbuf.as_buffer(values)
    assert buffer.device == "gpu"
    back = gridbuf.as_cupy(buffer)
    assert back.data.ptr == values.data.ptr
    assert back.strides == values.strides
    cupy.testing.assert_array_equal(back, values)
    assert gridbuf.as_cupy(values) is values
    with pytest.raises(gridbuf.GTNoSuchBufferError):
        gridbuf.as_cupy(np.arange(3.0))


def gridbuf_has_device() -> bool:
    try:
        gridbuf.allocate((1,), memory="device")
    except gridbuf.DeviceUnavailableError:
        return False
    return True
