"""Device code on any machine: the emulated device, its failures, and the C table of a device.

The emulated device is host memory that behaves as a GPU's may: the host cannot touch it, work on streams runs as late as
CUDA's rules allow, and anything can be made to fail. See `docs/explanation/emulated-device.md`.

>>> import gridbuf.testing
>>> with gridbuf.testing.emulated_device():
...     gridbuf.testing.synchronize()
>>> gridbuf.testing.is_emulated()
False
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, TypedDict, cast

from . import _core
from ._closing import Closing

if TYPE_CHECKING:
    from typing_extensions import CapsuleType

    from ._core import _Operation

__all__ = [
    "Statistics",
    "calls",
    "create_stream",
    "delayed",
    "destroy_stream",
    "device_table",
    "emulated_device",
    "failing",
    "is_emulated",
    "limited",
    "statistics",
    "synchronize",
]


class Statistics(TypedDict):
    """What the emulated device holds."""

    live_blocks: int
    """Blocks that their owner has not released."""
    live_bytes: int
    """Bytes of those, with what placement costs."""
    held_bytes: int
    """Bytes that live, or that wait for a stream to be given back."""
    peak_live_bytes: int
    pending_operations: int
    """Work that nobody has waited for."""
    live_streams: int
    host_to_device_bytes: int
    device_to_host_bytes: int


class emulated_device(Closing):  # noqa: N801  (used like a function)
    """Switches the emulated device on, for the whole process.

    `with emulated_device():` switches it back at the end to what it was; a plain call leaves it on. Blocks nest.
    `GRIDBUF_DEVICE=emulated` in the environment switches it on from the start.

    The switch decides which device is used from now on. Arrays that were made before stay what they are, and are freed
    and copied by the device that made them; but once it is off, arrays of the emulated device are no longer exported as
    CUDA memory: nobody else may take them for a GPU's.

    A host that touches device memory is ended by a segmentation fault. That is the purpose.
    """

    __slots__ = ("_previous",)

    def __init__(self, on: bool = True) -> None:
        self._previous = _core._device_switch_emulated(on)

    def _leave(self, failed: bool) -> None:
        _core._device_switch_emulated(self._previous)


def is_emulated() -> bool:
    """Whether the emulated device is switched on."""
    return _core._device_emulated_is_on()


def device_table() -> CapsuleType:
    """The C table of the device in use, in a capsule named "gridbuf_device_table_v1".

    `modules/device/registry/device_table.h` is its text: copy, synchronize, pointer information, a slow fill and streams, for
    programs that share nothing with gridbuf. Raises DeviceUnavailableError without a device.
    """
    return _core._device_table()


# ---- Streams. ----


def create_stream(*, blocking: bool = False) -> int:
    """The handle of a new stream of the device in use. A blocking one is ordered with the legacy default stream."""
    return _core._device_create_stream(blocking)


def destroy_stream(stream: int) -> None:
    """Destroys a stream of `create_stream`; its pending work still runs. ValueError for any other handle."""
    _core._device_destroy_stream(stream)


def synchronize(stream: int | None = None) -> None:
    """Waits for a stream, or for the whole device. Raises what work that ran meanwhile failed with."""
    _core._device_synchronize(stream)


# ---- The emulated device's own. ----


@contextmanager
def failing(
    operation: _Operation | None = None,
    *,
    call: int = 1,
    count: int = 1,
    error: type[Exception] = RuntimeError,
    message: str = "injected by gridbuf.testing.failing",
    when_run: bool = False,
) -> Iterator[None]:
    """Within the block, calls number `call` … `call + count - 1` of an operation (None: any) fail.

    operation: "allocate", "copy", "fill", "launch", "synchronize", "order", "stream" or "pointer_info".

    error: an exception class that gridbuf raises. when_run: the call succeeds and the work fails, as a CUDA kernel does;
    the next synchronisation raises it. Raises ValueError for unknown operations and errors.
    """
    number = _core._device_inject(operation, call, count, error.__name__, message, when_run, 0)
    try:
        yield
    finally:
        _core._device_remove_fault(number)


@contextmanager
def delayed(operation: _Operation | None = None, *, milliseconds: int) -> Iterator[None]:
    """Within the block, the work of an operation (None: any) ends this long after its call, at the earliest."""
    number = _core._device_inject(operation, 1, 2**62, None, "", False, milliseconds)
    try:
        yield
    finally:
        _core._device_remove_fault(number)


@contextmanager
def limited(capacity_bytes: int) -> Iterator[None]:
    """Within the block, the emulated device has this many bytes; allocations beyond raise MemoryError."""
    _core._device_set_capacity(capacity_bytes)
    try:
        yield
    finally:
        _core._device_set_capacity(None)


def calls(operation: _Operation | None = None) -> int:
    """How often an operation (None: any) of the emulated device was called so far."""
    return _core._device_calls(operation)


def statistics() -> Statistics:
    """What the emulated device holds. `synchronize()` first to see memory given back."""
    return cast("Statistics", _core._device_statistics())
