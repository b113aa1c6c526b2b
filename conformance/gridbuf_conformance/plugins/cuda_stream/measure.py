"""Info on `__cuda_stream__`: what it returns, twice, and whether the driver knows the stream."""

from __future__ import annotations

import ctypes
import gc
from typing import Any

from ...abi.memory import Memory
from ...info import ArrayInfo, StreamObjectInfo
from ...info.steps import Stage, enter
from ...info.values import attempt, describe, has
from ...measure.held import Held
from ..cuda.measure import dead

_ATTRIBUTE = "__cuda_stream__"


def add_light(info: ArrayInfo, obj: Any, memory: Memory) -> None:
    """Asks once. A result of a consumer can also be the handle alone."""
    if issubclass(type(obj), (int, ctypes.c_void_p)):  # `isinstance` may run its code
        handle = getattr(obj, "value", obj) or 0
        info.cuda_stream = StreamObjectInfo(pair=describe((None, handle)))
    elif has(obj, _ATTRIBUTE):
        info.cuda_stream = _asked(obj)


def add_streams(held: Held, obj: Any) -> None:
    """Asks twice, and the driver after each call."""
    if has(obj, _ATTRIBUTE):
        info = held.info.cuda_stream = _asked(obj)
        info.live = _is_live(info.handle, held.memory)
        info.again = _asked(obj).pair
        gc.collect()
        info.live_after = _is_live(info.handle, held.memory)


def _asked(obj: Any) -> StreamObjectInfo:
    enter(Stage.CS, "getter")
    value, error = attempt(lambda: getattr(obj, _ATTRIBUTE))
    is_method = callable(value)
    if is_method:
        value, error = attempt(value)
    return StreamObjectInfo(error=error, is_method=is_method, pair=describe(value))


def _is_live(handle: int | None, memory: Memory) -> bool | None:
    """None for a default stream, and without a driver."""
    enter(Stage.CS, "stream")
    access = memory.devices.access if handle is not None and handle > 2 else None
    return None if access is None or handle is None else dead(access, handle) is None
