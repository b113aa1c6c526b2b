"""`stream`: the stream of the device for the arrays and exports of this thread."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextvars import copy_context
from functools import partial
from importlib import import_module
from typing import Any, SupportsIndex

import numpy as np

from . import _core

_LEGACY_DEFAULT = 1


def _handle_of(source: Any) -> int:
    """The handle of an int or of a library's stream object.

    A plain 0 is refused, because it is not the same stream in all libraries (DP-16). A stream *object* of CuPy or PyTorch with the
    handle 0 is the legacy default stream, which is 1 in every protocol.
    """
    if hasattr(source, "__cuda_stream__"):
        protocol = source.__cuda_stream__
        _, handle = protocol() if callable(protocol) else protocol
    elif hasattr(source, "cuda_stream"):  # PyTorch
        handle = source.cuda_stream
    elif hasattr(source, "ptr"):  # CuPy
        handle = source.ptr
    else:
        return source  # type: ignore[no-any-return]  # _core says what it must be
    return _LEGACY_DEFAULT if handle == 0 else handle


class stream:  # noqa: N801  (used like a function)
    """Set the stream of the device for this thread, within a `with` block.

    Device arrays that the thread makes are made on this stream, and exported with it. Blocks nest.
    Without a block, work goes to the legacy default stream.

    Parameters
    ----------
    handle : int or object
        1 (legacy default), 2 (per-thread default), the handle of a live stream, or a stream of
        CuPy, PyTorch or any library with `__cuda_stream__`. It must live as long as the arrays made
        on it, which are freed there (CAI-22).

    Attributes
    ----------
    handle : int
        The number that exports name.

    Raises
    ------
    TypeError
        `handle` is not a stream.
    ValueError
        `handle` is 0, or the device does not know this stream.
    DeviceUnavailableError
        There is no device.

    Notes
    -----
    The errors come when the object is made, not when the block begins. Rules: docs/spec.md 8.5.

    Examples
    --------
    >>> import gridbuf, gridbuf.testing
    >>> with gridbuf.testing.emulated_device(), gridbuf.stream(2):
    ...     gridbuf.allocate((3,), device="gpu").stream
    2
    """

    __slots__ = ("_previous", "_source", "handle")

    handle: int

    def __init__(self, handle: SupportsIndex | Any) -> None:
        number = _handle_of(handle)
        _core._device_check_stream(number)
        self.handle = int(number)
        self._source = handle  # a stream object lives at least as long as this
        self._previous: list[int] = []

    def __enter__(self) -> stream:
        self._previous.append(_core._device_exchange_stream(self.handle))
        return self

    def __exit__(self, *error: object) -> None:
        _core._device_exchange_stream(self._previous.pop())

    def __repr__(self) -> str:
        return f"gridbuf.stream({self.handle})"


def run_on_device(kernel: Callable[..., Any], arrays: Sequence[Any]) -> Any:
    """`kernel(xp, *arrays)` where the device's memory can be used: by NumPy in a kernel of the emulated device, or by CuPy."""
    if _core._device_emulated_is_on():
        # In our context: numpy.errstate holds in a kernel, too.
        return _core._run_kernel(partial(copy_context().run, kernel, np), *arrays)
    cupy = import_module("cupy")  # They are its arrays.
    with cupy.cuda.ExternalStream(_core._device_current_stream()):
        return kernel(cupy, *arrays)
