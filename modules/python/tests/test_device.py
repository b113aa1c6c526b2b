"""Devices, streams and the emulated device's controls, as Python sees them."""

from __future__ import annotations

import ctypes
import os
import subprocess
import sys
import threading
from collections.abc import Iterator

import gridbuf
import numpy as np
import pytest
from gridbuf import testing

MEMORIES = ("pinned", "managed", "device")


def environment(**more: str) -> dict[str, str]:
    """The environment of a child that imports what this process imports."""
    return {**os.environ, "PYTHONPATH": ":".join(path for path in sys.path if path), **more}


def run(code: str, **more: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [
            sys.executable,
            "-c",
            "import os, sys, threading, gridbuf\nfrom gridbuf import testing\n" + code,
        ],
        capture_output=True,
        text=True,
        env=environment(**more),
        timeout=60,
        check=False,
    )


@pytest.fixture
def emulated() -> Iterator[None]:
    with testing.emulated_device():
        yield
        testing.synchronize()


# ---- The C table, laid over as another program would. ----


class PointerInfo(ctypes.Structure):
    _fields_ = (
        ("device_type", ctypes.c_int32),
        ("device_id", ctypes.c_int32),
        ("base", ctypes.c_uint64),
        ("length_bytes", ctypes.c_uint64),
        ("host_accessible", ctypes.c_int32),
        ("device_accessible", ctypes.c_int32),
    )


U64 = ctypes.c_uint64


class Table(ctypes.Structure):
    _fields_ = (
        ("version", ctypes.c_uint32),
        ("struct_bytes", ctypes.c_uint32),
        ("name", ctypes.c_char_p),
        ("copy", ctypes.CFUNCTYPE(ctypes.c_int, U64, U64, U64, U64)),
        ("synchronize", ctypes.CFUNCTYPE(ctypes.c_int, U64)),
        ("pointer_info", ctypes.CFUNCTYPE(ctypes.c_int, U64, ctypes.POINTER(PointerInfo))),
        (
            "slow_fill",
            ctypes.CFUNCTYPE(ctypes.c_int, U64, ctypes.c_int32, U64, ctypes.c_uint32, U64),
        ),
        ("stream_create", ctypes.CFUNCTYPE(ctypes.c_int, ctypes.POINTER(U64))),
        ("stream_destroy", ctypes.CFUNCTYPE(ctypes.c_int, U64)),
        ("stream_query", ctypes.CFUNCTYPE(ctypes.c_int, U64, ctypes.POINTER(ctypes.c_int32))),
        ("error_text", ctypes.CFUNCTYPE(ctypes.c_char_p)),
    )


def table() -> Table:
    get = ctypes.pythonapi.PyCapsule_GetPointer
    get.restype, get.argtypes = ctypes.c_void_p, (ctypes.py_object, ctypes.c_char_p)
    return Table.from_address(get(testing.device_table(), b"gridbuf_device_table_v1"))


def first_byte(address: int, stream: int = 1) -> int:
    seen = ctypes.c_uint8(0)
    device = table()
    assert device.copy(ctypes.addressof(seen), address, 1, stream) == 0, device.error_text()
    return seen.value


def test_the_table_moves_bytes_and_knows_addresses(emulated: None) -> None:
    device = table()
    assert (device.version, device.struct_bytes, device.name) == (1, 80, b"emulated")
    buffer = gridbuf.allocate((4,), "f8", memory="device")
    address = buffer.__cuda_array_interface__["data"][0]
    sent, received = np.arange(4.0), np.zeros(4)
    assert device.copy(address, sent.ctypes.data, 32, 1) == 0
    assert device.copy(received.ctypes.data, address, 32, 1) == 0
    assert received.tolist() == sent.tolist()
    info = PointerInfo()
    assert device.pointer_info(address + 31, info) == 0
    assert (info.device_type, info.host_accessible, info.device_accessible) == (2, 0, 1)
    assert info.base <= address < address + 32 <= info.base + info.length_bytes
    assert device.copy(address, sent.ctypes.data, 2**40, 1) != 0
    assert b"within its allocation" in device.error_text()


def test_a_consumer_that_does_not_wait_sees_old_bytes(emulated: None) -> None:
    device = table()
    buffer = gridbuf.allocate((8,), "u1", memory="device")
    pointer = buffer.__cuda_array_interface__["data"][0]
    assert device.slow_fill(pointer, 1, 8, 0, 1) == 0
    assert device.synchronize(1) == 0
    stream = testing.create_stream()
    assert device.slow_fill(pointer, 2, 8, 5, stream) == 0
    assert first_byte(pointer) == 1
    testing.synchronize(stream)
    assert first_byte(pointer) == 2
    testing.destroy_stream(stream)


# ---- Which device. ----


def test_without_a_device_the_error_says_what_was_looked_for() -> None:
    code = """
for make in (testing.device_table, lambda: gridbuf.allocate((2,), memory="device"), lambda: gridbuf.stream(1)):
    try:
        make()
    except gridbuf.DeviceUnavailableError as error:
        print(error)
"""
    done = run(code, CUDA_VISIBLE_DEVICES="", GRIDBUF_DEVICE="")
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert len(lines) == 3
    assert all("CUDA" in line and ";" in line for line in lines), lines


def test_the_environment_switches_it_on_and_refuses_unknown_names() -> None:
    code = "print(testing.is_emulated(), gridbuf.allocate((2,), memory='device'))"
    done = run(code, GRIDBUF_DEVICE="emulated")
    assert done.stdout.startswith("True")
    assert "emulated" in done.stdout.partition(" ")[2]
    wrong = run(code, GRIDBUF_DEVICE="gpu")
    (message,) = wrong.stderr.splitlines()[-1:]
    assert message.startswith("gridbuf.DeviceUnavailableError")
    assert "GRIDBUF_DEVICE is 'gpu', but must be 'emulated', 'cuda' or unset" in message


def test_the_switch_nests_and_a_plain_call_stays() -> None:
    assert not testing.is_emulated()
    with testing.emulated_device():
        with testing.emulated_device(False):
            assert not testing.is_emulated()
        with testing.emulated_device():
            pass
        assert testing.is_emulated()
    assert not testing.is_emulated()
    switch = testing.emulated_device()
    assert testing.is_emulated()
    with switch:
        pass
    assert not testing.is_emulated()


@pytest.mark.parametrize("memory", MEMORIES)
def test_memory_outlives_the_switch(memory: str) -> None:
    with testing.emulated_device():
        before = testing.statistics()["live_blocks"]
        buffer = gridbuf.allocate((1000,), memory=memory)
    assert testing.statistics()["live_blocks"] == before + 1
    del buffer
    assert testing.statistics()["live_blocks"] == before


def test_show_config_says_which_device_there_is(emulated: None) -> None:
    devices = gridbuf.show_config("dict")["devices"]
    assert devices["emulated device"].startswith("on")
    assert "built in" in devices["cuda"]
    with testing.emulated_device(False):
        assert gridbuf.show_config("dict")["devices"]["emulated device"] == "off"


def test_importing_and_host_arrays_start_no_driver() -> None:
    code = """
gridbuf.zeros((10,)); gridbuf.show_config("dict")
mapped = open("/proc/self/maps").read()
assert "libcuda.so" not in mapped
"""
    done = run(code)
    assert done.returncode == 0, done.stderr


# ---- gridbuf.stream. ----


def test_stream_names_the_stream_of_arrays_and_nests(emulated: None) -> None:
    first, second = testing.create_stream(), testing.create_stream(blocking=True)
    with gridbuf.stream(first) as scope:
        assert (scope.handle, repr(scope)) == (first, f"gridbuf.stream({first})")
        with gridbuf.stream(second):
            inner = gridbuf.allocate((2,), memory="device")
        outer = gridbuf.allocate((2,), memory="device")
    legacy = gridbuf.allocate((2,), memory="device")
    named = [b.__cuda_array_interface__["stream"] for b in (inner, outer, legacy)]
    assert named == [second, first, 1]


def test_a_stream_scope_can_be_entered_again_and_ends_with_an_exception(emulated: None) -> None:
    scope = gridbuf.stream(2)
    with pytest.raises(ZeroDivisionError), scope, scope:
        raise ZeroDivisionError
    assert gridbuf.allocate((2,), memory="device").__cuda_array_interface__["stream"] == 1


def test_streams_belong_to_their_thread(emulated: None) -> None:
    seen = []

    def allocate() -> None:
        seen.append(gridbuf.allocate((2,), memory="device").__cuda_array_interface__["stream"])

    with gridbuf.stream(2):
        thread = threading.Thread(target=allocate)
        thread.start()
        thread.join()
    assert seen == [1]


class CupyStream:
    def __init__(self, ptr: int) -> None:
        self.ptr = ptr


class TorchStream:
    def __init__(self, cuda_stream: int) -> None:
        self.cuda_stream = cuda_stream


class ProtocolStream:
    def __init__(self, handle: int) -> None:
        self.handle = handle

    def __cuda_stream__(self) -> tuple[int, int]:
        return (0, self.handle)


@pytest.mark.parametrize("kind", [CupyStream, TorchStream, ProtocolStream])
def test_stream_objects_of_other_libraries_are_taken(emulated: None, kind: type) -> None:
    handle = testing.create_stream()
    assert gridbuf.stream(kind(handle)).handle == handle
    # Their default stream is 0 inside the library, and 1 in every protocol.
    assert gridbuf.stream(kind(0)).handle == 1


def test_what_is_no_live_stream_is_refused(emulated: None) -> None:
    gone = testing.create_stream()
    testing.destroy_stream(gone)
    for bad in (0, -1, 2**64, 3, gone):
        with pytest.raises(ValueError, match="stream"):
            gridbuf.stream(bad)
    with pytest.raises(ValueError, match="pass 1 for the legacy default stream"):
        gridbuf.stream(0)
    for bad in (True, 1.0, "1", None, object()):
        with pytest.raises(TypeError, match="stream"):
            gridbuf.stream(bad)
    with pytest.raises(ValueError, match="stream"):
        testing.destroy_stream(gone)
    assert gridbuf.stream(np.int64(2)).handle == 2


# ---- Failures, delays, limits. ----


def test_a_failing_operation_raises_what_was_asked_for(emulated: None) -> None:
    with testing.failing("allocate", call=2, error=MemoryError, message="none left"):
        gridbuf.allocate((2,), memory="device")
        with pytest.raises(MemoryError, match="none left"):
            gridbuf.allocate((2,), memory="device")
        gridbuf.allocate((2,), memory="device")
    for bad in ({"operation": "memcpy"}, {"error": KeyError}, {"call": 0}):
        with pytest.raises(ValueError, match=next(iter(bad))), testing.failing(**bad):  # type: ignore[arg-type]
            pass


def test_a_failure_of_work_is_raised_by_who_waits(emulated: None) -> None:
    device = table()
    buffer = gridbuf.allocate((8,), "u1", memory="device")
    address = buffer.__cuda_array_interface__["data"][0]
    with testing.failing("fill", message="as kernels fail", when_run=True):
        assert device.slow_fill(address, 1, 8, 0, 1) == 0
    with pytest.raises(RuntimeError, match="as kernels fail"):
        testing.synchronize()
    testing.synchronize()


def test_every_failure_leaves_nothing_behind(emulated: None) -> None:
    def use() -> None:
        source = gridbuf.allocate((3, 4), memory="device", alignment_size=64)
        source.copy(memory="host")

    use()
    testing.synchronize()
    before = testing.statistics()
    for call in range(1, 100):
        with testing.failing(call=call) as _:
            try:
                use()
            except RuntimeError as error:
                assert "injected" in str(error)
            else:
                break
        testing.synchronize()
        after = testing.statistics()
        assert after["live_blocks"] == before["live_blocks"]
        assert after["held_bytes"] == before["held_bytes"]
    assert 2 < call < 99


def test_a_limited_device_runs_out_of_memory_with_words(emulated: None) -> None:
    with testing.limited(4096), pytest.raises(MemoryError, match="emulated device"):
        gridbuf.allocate((1000, 1000), memory="device")
    gridbuf.allocate((1000, 1000), memory="device")
    with pytest.raises(ValueError, match="capacity_bytes"), testing.limited(-1):
        pass


def test_a_delay_is_kept(emulated: None) -> None:
    device = table()
    buffer = gridbuf.allocate((8,), "u1", memory="device")
    address = buffer.__cuda_array_interface__["data"][0]
    calls = testing.calls("fill")
    with testing.delayed("fill", milliseconds=20):
        assert device.slow_fill(address, 1, 8, 0, 1) == 0
    assert testing.calls("fill") == calls + 1
    assert testing.statistics()["pending_operations"] > 0
    assert first_byte(address) == 1


# ---- The wrong side, fork, and the end. ----


def test_a_host_that_touches_device_memory_is_ended() -> None:
    code = """
import ctypes
buffer = gridbuf.allocate((2,), memory="device")
print("before", flush=True)
ctypes.c_int.from_address(buffer.__cuda_array_interface__["data"][0]).value
print("after")
"""
    done = run(code, GRIDBUF_DEVICE="emulated")
    assert done.stdout.split() == ["before"]
    assert done.returncode != 0


def test_a_child_after_fork_is_told_so_and_ends_cleanly() -> None:
    code = """
arrays = [gridbuf.allocate((1000,), memory=memory) for memory in ("pinned", "managed", "device")]
child = os.fork()
if child == 0:
    try:
        gridbuf.allocate((2,), memory="device")
    except gridbuf.DeviceUnavailableError as error:
        del arrays
        sys.exit(0 if "fork" in str(error) else 2)
    sys.exit(3)
_, status = os.waitpid(child, 0)
del arrays
testing.synchronize()
print(os.waitstatus_to_exitcode(status), testing.statistics()["live_blocks"])
"""
    done = run(code, GRIDBUF_DEVICE="emulated")
    assert done.stdout.split() == ["0", "0"], done.stderr


LIVE = """
import atexit
kept = [gridbuf.allocate((1000,), memory=memory) for memory in ("pinned", "managed", "device")]
sys.modules["kept"] = kept
cycle = []; cycle.append((cycle, gridbuf.allocate((1000,), memory="device")))
capsule = kept[2].__dlpack__(stream=1)
unconsumed = testing.device_table()
threading.Thread(target=lambda: kept.append(gridbuf.allocate((5,), memory="device"))).start()
"""


@pytest.mark.parametrize(
    ("ending", "status"),
    [
        ("", 0),
        ("sys.exit(0)", 0),
        ("raise SystemExit(3)", 3),
        ("raise ValueError", 1),
        ("os._exit(0)", 0),
        ("threading.Thread(target=lambda: (globals().clear())).start()", 0),
        ("atexit.register(lambda: gridbuf.allocate((5,), memory='device'))", 0),
        ("threading.Thread(target=threading.Event().wait, daemon=True).start()", 0),
    ],
)
def test_the_process_ends_cleanly_with_live_memory(ending: str, status: int) -> None:
    done = run(LIVE + ending, GRIDBUF_DEVICE="emulated")
    assert done.returncode == status, done.stderr
    assert ("Traceback" in done.stderr) == (status == 1), done.stderr


# ---- CUDA itself. ----


def test_cuda_serves_every_memory_or_says_why_not() -> None:
    try:
        device = table()
    except gridbuf.DeviceUnavailableError as error:
        pytest.skip(f"NOT RUN, no GPU: {error}")
    assert device.name == b"cuda"
    for memory in MEMORIES:
        buffer = gridbuf.allocate((100,), memory=memory)
        assert buffer.copy(memory="host").shape == (100,)
    stream = testing.create_stream()
    with gridbuf.stream(stream):
        made = gridbuf.allocate((2,), memory="device")
        assert made.__cuda_array_interface__["stream"] == stream
    del made
    testing.synchronize()
    testing.destroy_stream(stream)
