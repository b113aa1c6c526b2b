"""Device memory through the C table and through the CUDA driver."""

from __future__ import annotations

import ctypes
from ctypes import addressof, byref, c_char, sizeof
from typing import Any

import pytest

from gridbuf_conformance.abi import device as abi
from gridbuf_conformance.abi.device import (
    CudaAccess,
    DeviceError,
    Devices,
    DeviceSpace,
    DeviceTable,
    PointerInfo,
    TableAccess,
)
from gridbuf_conformance_mutants import capsules
from gridbuf_conformance_mutants.device import DEVICE, DeviceBlock

ACCESS = TableAccess(DEVICE.table())
NAME = abi.TABLE_NAME.encode()


def host(content: bytes) -> ctypes.Array:
    return (c_char * len(content)).from_buffer_copy(content)


def read(address: int, count: int, stream: int = 1) -> bytes:
    target = host(bytes(count))
    ACCESS.copy(addressof(target), address, count, stream)
    return target.raw


# --- the table ----------------------------------------------------------------------------------


def test_structs_have_the_sizes_of_the_header() -> None:
    assert sizeof(abi._PointerInfo) == 32
    assert abi._PointerInfo.length_bytes.offset == 16
    assert sizeof(DeviceTable) == 80
    assert DeviceTable.name.offset == 8
    assert DeviceTable.copy.offset == 16
    assert DeviceTable.error_text.offset == 72


def test_bytes_go_there_and_back() -> None:
    block = DeviceBlock(100, "gpu")
    source = host(b"twelve bytes")
    ACCESS.copy(block.low + 8, addressof(source), 12, 1)
    assert read(block.low + 8, 12) == b"twelve bytes"
    assert ACCESS.name == "zoo"


@pytest.mark.parametrize(("kind", "code"), [("gpu", 2), ("pinned", 3), ("managed", 13)])
def test_pointers_are_known(kind: str, code: int) -> None:
    block = DeviceBlock(100, kind)
    info = ACCESS.pointer_info(block.low + 7)
    assert info == PointerInfo(code, 0, block.low, block.high - block.low, kind != "gpu", True)
    source = host(b"x")
    assert ACCESS.pointer_info(addressof(source))[0] == 1
    assert not ACCESS.pointer_info(addressof(source)).device_accessible


def test_work_waits_for_its_stream_alone() -> None:
    block = DeviceBlock(16, "gpu")
    stream, other = ACCESS.create_stream(), ACCESS.create_stream()
    ACCESS.slow_fill(block.low, 0x42, 16, 1, stream)
    assert read(block.low, 1, other) == b"\0"
    assert read(block.low, 1, stream) == b"\x42"
    ACCESS.slow_fill(block.low, 0x43, 16, 1, stream)
    ACCESS.synchronize()
    assert read(block.low, 1, other) == b"\x43"
    ACCESS.destroy_stream(other)
    ACCESS.check_stream(stream)
    ACCESS.destroy_stream(stream)
    with pytest.raises(DeviceError, match="stream_query: invalid stream handle"):
        ACCESS.check_stream(stream)


def _table(**changes: Any) -> tuple[Any, Any]:
    table = DeviceTable.from_buffer_copy(DEVICE._table)
    for name, value in changes.items():
        setattr(table, name, value)
    return capsules.new_capsule(addressof(table), NAME), table


@pytest.mark.parametrize("changes", [{"version": 2}, {"struct_bytes": 72}])
def test_another_table_is_refused(changes: dict[str, int]) -> None:
    capsule, table = _table(**changes)
    with pytest.raises(ValueError, match="must have version 1"):
        TableAccess(capsule)
    assert table.version in (1, 2)


def test_anything_else_is_refused() -> None:
    with pytest.raises(ValueError, match="is a int, must be a capsule"):
        TableAccess(3)
    name = b"dltensor"
    with pytest.raises(ValueError, match="named 'dltensor', must be gridbuf_device_table_v1"):
        TableAccess(capsules.new_capsule(addressof(DEVICE._table), name))


# --- finding it, and looking through it ---------------------------------------------------------


def test_nothing_is_looked_for_before_it_is_needed() -> None:
    asked = []
    devices = Devices(lambda: asked.append(1) or DEVICE.table())
    assert asked == []
    devices.settle()
    assert asked == []
    assert devices.access.name == "zoo"
    assert devices.access is devices.access
    assert asked == [1]


def test_without_a_driver_there_is_a_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    def absent(name: str) -> None:
        raise OSError(f"{name}: cannot open shared object file")

    monkeypatch.setattr(abi.ctypes, "CDLL", absent)
    devices = Devices(lambda: None)
    assert devices.access is None
    assert "no CUDA driver: libcuda.so.1" in devices.reason
    assert DeviceSpace(None, 1).info(4096) is None
    assert not DeviceSpace(None, 1).readable(4096, 4097)


@pytest.mark.parametrize("stream", [1, None])
def test_device_space_stays_in_one_allocation(stream: int | None) -> None:
    block, space = DeviceBlock(8192, "gpu"), DeviceSpace(ACCESS, stream)
    assert space.readable(block.low, block.high)
    assert not space.readable(block.low - 1, block.high)
    assert not space.readable(block.low, block.high + 1)
    assert space.readable(5, 5)
    assert space.write(block.low, bytes(range(256)))
    assert space.read(block.low + 3, 2) == b"\3\4"
    assert space.read(block.high - 1, 2) is None
    assert space.read(2**70, 1) is None
    assert not space.write(block.high, b"x")
    assert space.elements(block.low + 4, (-4, 12), [0, -4, 8], 2) == b"\4\5\0\1\x0c\x0d"
    assert space.elements(block.low, (0, 2 * 8192), [0], 1) is None


def test_large_hulls_are_read_element_by_element() -> None:
    block, space = DeviceBlock(2**17, "gpu"), DeviceSpace(ACCESS, 1)
    space.write(block.low + 2**16, b"far")
    assert space.elements(block.low, (0, 2**17), [2**16, 0], 3) == b"far\0\0\0"


# --- the CUDA driver ----------------------------------------------------------------------------


class _Driver:
    """The driver's functions, as far as the logic above them goes: which pointer is what, which
    context is current.

    That the real library takes these calls is what `test_the_real_driver` shows, where there is
    one.
    """

    def __init__(self, **attributes: dict[int, int]) -> None:
        self.attributes = attributes
        self.contexts = 0
        self.called: list[str] = []

    def __getattr__(self, name: str) -> Any:
        if not name.startswith("cu"):
            raise AttributeError(name)

        def call(*arguments: Any) -> int:
            self.called.append(name)
            return getattr(self, f"_{name}", lambda *_: 0)(*arguments)

        return call

    def _cuDeviceGetCount(self, count: Any) -> int:
        count._obj.value = 1
        return 0

    def _cuCtxPushCurrent_v2(self, context: Any) -> int:
        self.contexts += 1
        return 0

    def _cuCtxPopCurrent_v2(self, context: Any) -> int:
        self.contexts -= 1
        return 0

    def _cuPointerGetAttribute(self, value: Any, which: Any, address: Any) -> int:
        found = self.attributes.get(hex(address.value), {})
        if which.value not in found:
            return 1  # CUDA_ERROR_INVALID_VALUE
        value._obj.value = found[which.value]
        return 0

    def _cuMemGetAddressRange_v2(self, base: Any, length: Any, address: Any) -> int:
        base._obj.value, length._obj.value = address.value & ~0xFF, 512
        return 0

    def _cuStreamQuery(self, stream: Any) -> int:
        return {1: 0, 7: 600}.get(stream.value, 400)

    def _cuGetErrorString(self, code: Any, text: Any) -> int:
        text._obj.value = b"invalid resource handle"
        return 0


DEVICE_POINTER, PINNED, MANAGED, PLAIN = "0x1010", "0x2020", "0x3030", "0x4040"
DRIVER = _Driver(
    **{
        DEVICE_POINTER: {2: 2, 3: 0x1010, 8: 0, 9: 0},
        PINNED: {2: 1, 3: 0x2020, 4: 0x2020, 8: 0, 9: 0, 11: 0x2000, 12: 4096},
        MANAGED: {2: 2, 3: 0x3030, 4: 0x3030, 8: 1, 9: 0},
    }
)


@pytest.mark.parametrize(
    ("address", "expected"),
    [
        (DEVICE_POINTER, PointerInfo(2, 0, 0x1000, 512, False, True)),
        (PINNED, PointerInfo(3, 0, 0x2000, 4096, True, True)),
        (MANAGED, PointerInfo(13, 0, 0x3000, 512, True, True)),
        (PLAIN, PointerInfo(1, 0, 0x4040, 0, True, False)),
    ],
)
def test_the_drivers_attributes_are_put_into_dlpacks_words(
    address: str, expected: PointerInfo
) -> None:
    assert CudaAccess(DRIVER).pointer_info(int(address, 16)) == expected
    assert DRIVER.contexts == 0


def test_streams_that_the_driver_does_not_know() -> None:
    access = CudaAccess(DRIVER)
    access.check_stream(1)
    access.check_stream(7)  # not ready, and alive
    with pytest.raises(DeviceError, match="cuStreamQuery: invalid resource handle"):
        access.check_stream(99)
    assert DRIVER.contexts == 0


def test_copies_and_slow_fills_are_enqueued_in_the_devices_context() -> None:
    access = CudaAccess(DRIVER)
    DRIVER.called.clear()
    access.copy(0x1010, 0x4040, 8, 1)
    access.slow_fill(0x1010, 300, 8, 5, 7)
    calls = [name for name in DRIVER.called if not name.startswith(("cuCtx", "cuPointer"))]
    assert [name for name in calls if name != "cuDevicePrimaryCtxRetain"] == [
        "cuMemcpyAsync",
        "cuStreamSynchronize",
        "cuLaunchHostFunc",
        "cuMemsetD8Async",
    ]
    assert DRIVER.contexts == 0


def test_the_real_driver() -> None:
    """On a machine with a CUDA device: bytes, kinds, streams, pending work by the driver."""
    try:
        access = CudaAccess()
    except DeviceError as error:
        pytest.skip(f"UNTESTED here: {error}; the CUDA driver's side of this file needs a GPU")
    pointer = ctypes.c_uint64()
    with access._current(0):
        access._call("cuMemAlloc_v2", byref(pointer), ctypes.c_size_t(4096))
    info = access.pointer_info(pointer.value)
    assert (info.device_type, info.base) == (2, pointer.value)
    assert info.length_bytes >= 4096
    assert (info.host_accessible, info.device_accessible) == (False, True)
    space = DeviceSpace(access, None)
    assert space.write(pointer.value, b"abc")
    assert space.read(pointer.value, 3) == b"abc"
    stream = access.create_stream()
    access.slow_fill(pointer.value, 0x42, 16, 50, stream)
    assert space.read(pointer.value, 1) == b"a", "the read did not wait for the slow fill"
    assert DeviceSpace(access, stream).read(pointer.value, 1) == b"\x42"
    access.check_stream(stream)
    access.destroy_stream(stream)
    source = host(b"x")
    assert access.pointer_info(addressof(source)).device_type == 1
    with access._current(0):
        access._call("cuMemFree_v2", pointer)
