"""Info on the buffer protocol: every request, granted or refused."""

from __future__ import annotations

import struct
import sys
from functools import partial
from types import WrapperDescriptorType
from typing import Any

from ...abi.memory import Memory
from .pybuffer import REQUESTS, HeldBuffer, RefusedRequest, request
from ...info import MethodInfo, PythonBufferInfo, ReleaseInfo, RequestInfo
from ...info.steps import Stage, enter
from ...info.values import attempt, describe, error_info

MAIN_REQUESTS = ("FULL_RO", "RECORDS_RO", "STRIDES", "ND", "SIMPLE")
"""The requests that are tried, in this order, where any description of the buffer will do."""


def buffer_info(
    obj: Any, memory: Memory, names: tuple[str, ...] = tuple(REQUESTS)
) -> dict[str, RequestInfo]:
    """What came of each request. Each view is released at once."""
    info = {}
    for name in names:
        info[name] = _one(obj, name, memory)
    return info


def simple_request(obj: Any, memory: Memory) -> RequestInfo:
    """The info on one SIMPLE request."""
    return _one(obj, "SIMPLE", memory)


def _one(obj: Any, name: str, memory: Memory) -> RequestInfo:
    enter(Stage.PB, f"flags={name}")
    try:
        held = request(obj, REQUESTS[name])
    except RefusedRequest as refusal:
        return RequestInfo(error=error_info(refusal.error), obj_is_null=refusal.obj_is_null)
    try:
        return RequestInfo(held.info(memory))
    finally:
        enter(Stage.PB, f"release={name}")
        held.release()


def hold_buffer(obj: Any) -> HeldBuffer | None:
    """A view that stays open until the caller releases it; None where no request is granted."""
    for name in MAIN_REQUESTS:
        enter(Stage.PB, f"flags={name}")
        try:
            return request(obj, REQUESTS[name])
        except RefusedRequest:
            continue
    return None


def _release_info(obj: Any) -> ReleaseInfo:
    """How an own `__release_buffer__` takes its calls: for two views, and during an exception.

    What it raises, Python can only print. `struct.unpack_from` releases its view after it has
    raised `struct.error`.
    """
    enter(Stage.PB, "__release_buffer__")
    raised: list[str] = []
    hook = sys.unraisablehook
    sys.unraisablehook = lambda unraisable: raised.append(unraisable.exc_type.__name__)
    try:
        views = [attempt(lambda: memoryview(obj))[0] for _ in range(2)]
        for view in views:
            if view is not None:
                view.release()
        _, error = attempt(lambda: struct.unpack_from("B", obj, 2**40))
    finally:
        sys.unraisablehook = hook
    return ReleaseInfo(raised, None if error is None else error.type)


def python_level_info(obj: Any) -> PythonBufferInfo:
    """What `memoryview(obj)`, `obj.__buffer__`, a released memoryview do (PB-27 … 30, 33)."""
    enter(Stage.PB, "memoryview")
    view, error = attempt(lambda: memoryview(obj))
    info = PythonBufferInfo(MethodInfo(error, is_memoryview=view is not None))
    if view is not None:
        info.memoryview.readonly = view.readonly
        view.release()
        _, error = attempt(lambda: view.nbytes)
        info.after_release = MethodInfo(error)
    if callable(getattr(type(obj), "__release_buffer__", None)) and not isinstance(
        type(obj).__release_buffer__, WrapperDescriptorType
    ):
        info.release = _release_info(obj)
    method = getattr(type(obj), "__buffer__", None)
    is_asked = sys.version_info >= (3, 12)
    if method is None or not is_asked or isinstance(method, WrapperDescriptorType):
        # The wrapper of a C exporter adds nothing, and CPython 3.12 and 3.13 crash in it where
        # an exporter keeps ndim above 1 for a request without shape, as the documentation has it.
        return info
    for name in ("FULL_RO", "WRITABLE"):
        enter(Stage.PB, f"__buffer__={name}")
        result, error = attempt(partial(obj.__buffer__, REQUESTS[name]))
        if error is not None:
            info.methods[name] = MethodInfo(error)
            continue
        is_view = isinstance(result, memoryview)
        readonly = is_view and result.readonly
        info.methods[name] = MethodInfo(None, describe(result), is_view, readonly)
        if is_view:
            result.release()
    return info
