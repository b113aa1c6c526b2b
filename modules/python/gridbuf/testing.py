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
from contextlib import AbstractContextManager, contextmanager
from typing import TYPE_CHECKING, TypedDict, cast

from . import _core

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


def __dir__() -> list[str]:
    return __all__


class Statistics(TypedDict):
    """What the emulated device holds; sizes are in bytes.

    Attributes
    ----------
    live_blocks, live_bytes : int
        Blocks that their owner has not released, and their bytes with what placement costs.
    held_bytes : int
        Bytes in use, and bytes that wait for a stream to be given back.
    peak_live_bytes : int
        The most bytes that were in use.
    pending_operations : int
        Work that no call has waited for.
    live_streams : int
        Streams that exist.
    host_to_device_bytes, device_to_host_bytes : int
        Bytes that copies have moved so far.
    """

    live_blocks: int
    live_bytes: int
    held_bytes: int
    peak_live_bytes: int
    pending_operations: int
    live_streams: int
    host_to_device_bytes: int
    device_to_host_bytes: int


class emulated_device(AbstractContextManager["emulated_device"]):  # noqa: N801  (used like a function)
    """Switch the emulated device on, for the whole process.

    At the end of a `with` block the device is what it was before; a plain call leaves it on. Blocks
    nest. `GRIDBUF_DEVICE=emulated` in the environment switches it on from the start.

    Parameters
    ----------
    on : bool, default True
        False switches it off.

    Raises
    ------
    TypeError
        `on` is not a bool.

    Notes
    -----
    The switch decides which device is used from now on. Arrays keep the device that made them. Once
    the emulated device is off, its arrays are not exported as CUDA memory. A host that touches
    device memory is ended by a segmentation fault, on purpose. Rules: docs/spec.md 8.14 and 8.15.

    Examples
    --------
    >>> import gridbuf, gridbuf.testing
    >>> with gridbuf.testing.emulated_device():
    ...     gridbuf.allocate((3,), device="gpu").memory
    'device'
    """

    __slots__ = ("_previous",)

    def __init__(self, on: bool = True) -> None:
        self._previous = _core._device_switch_emulated(on)

    def __exit__(self, *error: object) -> None:
        _core._device_switch_emulated(self._previous)


def is_emulated() -> bool:
    """Return whether the emulated device is switched on (docs/spec.md 8.14).

    Returns
    -------
    bool
        True if it is on.
    """
    return _core._device_emulated_is_on()


def device_table() -> CapsuleType:
    """Return the C table of the device in use.

    Returns
    -------
    capsule
        Its name is "gridbuf_device_table_v1".

    Raises
    ------
    DeviceUnavailableError
        There is no device.

    Notes
    -----
    `modules/device/testing/device_table.h` declares it: copy, synchronize, pointer information, a
    slow fill and streams, for programs that share nothing with gridbuf. Rules: docs/spec.md 8.20.
    """
    return _core._device_table()


# ---- Streams. ----


def create_stream(*, blocking: bool = False) -> int:
    """Return the handle of a new stream of the device in use (docs/spec.md 8.5).

    Parameters
    ----------
    blocking : bool, default False
        Whether the stream is ordered with the legacy default stream.

    Returns
    -------
    int
        The handle, for `gridbuf.stream` and `destroy_stream`.

    Raises : as in `device_table`

    Examples
    --------
    >>> import gridbuf.testing
    >>> with gridbuf.testing.emulated_device():
    ...     gridbuf.testing.destroy_stream(gridbuf.testing.create_stream())
    """
    return _core._device_create_stream(blocking)


def destroy_stream(stream: int) -> None:
    """Destroy a stream of `create_stream`; its pending work still runs (docs/spec.md 8.5).

    Parameters
    ----------
    stream : int
        The handle.

    Raises
    ------
    ValueError
        `create_stream` did not return this handle, or the stream is destroyed.
    DeviceUnavailableError : as in `device_table`
    """
    _core._device_destroy_stream(stream)


def synchronize(stream: int | None = None) -> None:
    """Wait for a stream, or for the whole device (docs/spec.md 8.16).

    Parameters
    ----------
    stream : int, optional
        The handle of a stream. Default: the whole device.

    Raises
    ------
    ValueError
        The device does not know this stream.
    DeviceUnavailableError : as in `device_table`
    Exception
        What work that ran meanwhile failed with.
    """
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
    """Make calls of an operation of the emulated device fail, within a `with` block.

    Parameters
    ----------
    operation : {"allocate", "copy", "fill", "launch", "synchronize", "order", "stream", "pointer_info"}, optional
        The operation of the device. Default: any.
    call : int, default 1
        The number of the first call that fails; the next call is 1.
    count : int, default 1
        How many calls fail.
    error : type, default RuntimeError
        An exception class that gridbuf raises.
    message : str, optional
        The text of the error.
    when_run : bool, default False
        True lets the call succeed and the work fail, as a CUDA kernel does. The next
        synchronisation raises the error.

    Yields
    ------
    None
        The block runs with the failure.

    Raises
    ------
    ValueError
        The operation or the error is unknown, or `call` is below 1.

    Notes
    -----
    Rules: docs/spec.md 8.19.

    Examples
    --------
    >>> import gridbuf, gridbuf.testing
    >>> with gridbuf.testing.emulated_device(), gridbuf.testing.failing("allocate", error=MemoryError):
    ...     try:
    ...         gridbuf.allocate((3,), device="gpu")
    ...     except MemoryError:
    ...         print("failed")
    failed
    """
    number = _core._device_inject(operation, call, count, error.__name__, message, when_run, 0)
    try:
        yield
    finally:
        _core._device_remove_fault(number)


@contextmanager
def delayed(operation: _Operation | None = None, *, milliseconds: int) -> Iterator[None]:
    """Delay the work of an operation of the emulated device, within a `with` block.

    Parameters
    ----------
    operation : as in `failing`
    milliseconds : int
        The work ends this long after its call, at the earliest.

    Yields
    ------
    None
        The block runs with the delay.

    Raises
    ------
    ValueError
        The operation is unknown.

    Notes
    -----
    Rules: docs/spec.md 8.19.
    """
    number = _core._device_inject(operation, 1, 2**62, None, "", False, milliseconds)
    try:
        yield
    finally:
        _core._device_remove_fault(number)


@contextmanager
def limited(capacity_bytes: int) -> Iterator[None]:
    """Limit the memory of the emulated device, within a `with` block (docs/spec.md 8.19).

    Parameters
    ----------
    capacity_bytes : int
        Bytes of the device. Allocations beyond raise MemoryError.

    Yields
    ------
    None
        The block runs with the limit.

    Raises
    ------
    ValueError
        `capacity_bytes` is negative.

    Examples
    --------
    >>> import gridbuf, gridbuf.testing
    >>> with gridbuf.testing.emulated_device(), gridbuf.testing.limited(1 << 20):
    ...     try:
    ...         gridbuf.allocate((1 << 20,), device="gpu")
    ...     except MemoryError:
    ...         print("too large")
    too large
    """
    _core._device_set_capacity(capacity_bytes)
    try:
        yield
    finally:
        _core._device_set_capacity(None)


def calls(operation: _Operation | None = None) -> int:
    """Return how often an operation of the emulated device was called so far (docs/spec.md 8.19).

    Parameters
    ----------
    operation : as in `failing`

    Returns
    -------
    int
        The number of calls.

    Raises : as in `delayed`
    """
    return _core._device_calls(operation)


def statistics() -> Statistics:
    """Return what the emulated device holds.

    Returns
    -------
    Statistics
        Numbers of blocks, bytes and streams.

    Notes
    -----
    Call `synchronize` first to see memory given back.
    """
    return cast("Statistics", _core._device_statistics())
