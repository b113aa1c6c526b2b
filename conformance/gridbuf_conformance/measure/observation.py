"""The whole observation of one produced object: it, its views, a second product, and their life."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

from ..interfaces.descriptors import descriptors_of
from ..abi.device import Devices
from ..interfaces.dlpack_structs.structs import CPU
from ..abi.memory import Memory
from ..info import ArrayInfo, DriverInfo, Observation
from ..info.steps import Stage, enter
from ..info.values import attempt, has, type_name
from ..plan import Plan
from ..plan.producer import is_declined, python_view
from . import life
from ..interfaces.buffer_protocol.measure import MAIN_REQUESTS, buffer_info
from ..interfaces.dlpack_protocol.measure import NEWEST, call_info
from .content import mapping_info
from .held import TOUCH_LIMIT_BYTES, Held, hooks
from .interface import array_attribute_info, interface_info
from .origin import origins
from .racing import race_info

THREADS = "threads"
"""In the groups of a measurement, it asks several threads to export the object at the same time."""


def observe(
    obj: Any,
    plan: Plan | None,
    *,
    groups: frozenset[str],
    again: Callable[[], Any] | None = None,
    other: Callable[[], Any] | None = None,
    reshaped: Callable[[], Any] | None = None,
    apply_view: Callable[[Any, Any], Any] | None = None,
    devices: Devices | None = None,
    on_stream: Callable[[int], Any] | None = None,
    has_memory: bool = True,
    exports_move: bool = False,
) -> Observation:
    """Measures `obj`, and returns info that survives JSON. Never raises for a faulty object.

    `plan` is the request; None for a live object without a plan, which is never written to and
    never put at risk. `again` makes a second object from the same plan; without it nothing is said
    about second products and drop orders. `other` makes one with another content, `reshaped` one of
    another shape. `apply_view` applies one view operation (default: Python's own means). `devices`
    reaches device memory, `on_stream` makes the producer work on a stream (`Producer.on_stream`).
    `has_memory` and `exports_move` are the producer's word on its objects (`Producer`). `groups`
    are the rule groups that will be judged: what none of them needs is not measured.
    """
    memory = Memory(devices)
    info = Observation(type_name(obj), memory.map.known, live=plan is None)
    info.has_memory, info.exports_move = has_memory, exports_move
    is_filled = plan is None or (plan.fill is not None and plan.nbytes < TOUCH_LIMIT_BYTES)
    touch = has_memory and is_filled
    subject = Held(obj, memory, groups, touch=touch, poke=plan is not None)
    info.root = subject.info
    info.origins = attempt(partial(origins, obj, info.root, memory))[0] or {}
    info.repeated = _repeated(obj, memory)
    for hook in hooks("add_attributes"):
        hook(info, obj, groups)
    if plan is not None:
        if not subject.found or set(subject.found) == {"DL"}:
            info.array_attribute = array_attribute_info(obj, memory)
        info.view = _viewed(obj, plan, apply_view or python_view, memory, groups, touch)
    if again is not None:
        info.second = _second(again, memory)
    if reshaped is not None and touch:
        _request_and_release(reshaped, memory)
    info.view_unchanged = subject.view_is_unchanged()
    if touch and not _is_large(subject):
        info.life = life.life_info(obj, subject, memory, again, other, plan)
        if THREADS in groups and plan is not None and plan.ndim <= 1 and not plan.views:
            info.race = race_info(lambda: light_info(obj, Memory())[0], again, memory)
        if again is not None and plan is not None and plan.ndim <= 2 and not plan.views:
            for hook in hooks("add_pending"):
                info.pending = hook(subject, again, on_stream)
    info.driver = _driver(memory.devices, subject)
    enter(Stage.TEARDOWN)
    subject.release()
    return info


def _driver(devices: Devices, subject: Held) -> DriverInfo:
    """Which driver answered for device memory; asked only where it matters."""
    if all(array.device[0] == CPU for array in subject.found.values()):
        return DriverInfo(reason="the array is in host memory")
    access = devices.access
    return DriverInfo(access.name) if access else DriverInfo(reason=devices.reason)


def _is_large(subject: Held) -> bool:
    """Whether more such objects cost too much: padding can make the hull of few elements large."""
    return any(
        a.hull and a.hull[1] - a.hull[0] >= TOUCH_LIMIT_BYTES for a in subject.found.values()
    )


def light_info(
    obj: Any, memory: Memory, requests: tuple[str, ...] = MAIN_REQUESTS
) -> tuple[ArrayInfo, list[Any]]:
    """The metadata of AI, PB and DL read once, and what has to be kept alive while it is used."""
    info = ArrayInfo()
    kept: list[Any] = []
    if has(obj, "__array_interface__"):
        info.ai, dictionary = interface_info(obj, memory)
        kept.append(dictionary)
    for hook in hooks("add_light"):
        kept.append(hook(info, obj, memory))
    info.pb = buffer_info(obj, memory, requests)
    if has(obj, "__dlpack__"):
        info.main = call_info(obj, memory, "max_version=(1,3)", NEWEST)
        if info.main.error is not None:
            info.main = call_info(obj, memory, "legacy", {})
    return info, kept


def _repeated(obj: Any, memory: Memory) -> list[ArrayInfo]:
    """Light info again: once here, and once on another thread. No race: its result could depend on
    the machine's load.
    """
    results = [light_info(obj, memory)]
    enter(Stage.AGAIN, "threads")
    thread = threading.Thread(target=lambda: results.append(light_info(obj, Memory())))
    thread.start()
    thread.join()
    return [info for info, _ in results]


def _second(again: Callable[[], Any], memory: Memory) -> ArrayInfo:
    """A second product of the plan, measured while the first one lives."""
    enter(Stage.AGAIN, "produce")
    other, error = attempt(again)
    if error is not None:
        return ArrayInfo(error=error)
    if is_declined(other):
        return ArrayInfo()
    info, kept = light_info(other, memory)
    info.mapping = mapping_info(descriptors_of(info), memory)
    enter(Stage.LIFE, "drop=second")
    kept.clear()
    del other
    return info


def _request_and_release(reshaped: Callable[[], Any], memory: Memory) -> None:
    """Views of an object of another shape come and go, while those of the first one are open."""
    enter(Stage.AGAIN, "produce")
    made, error = attempt(reshaped)
    if error is None and not is_declined(made):
        buffer_info(made, memory, MAIN_REQUESTS)


def _viewed(
    obj: Any,
    plan: Plan,
    apply_view: Callable[[Any, Any], Any],
    memory: Memory,
    groups: frozenset[str],
    touch: bool,
) -> ArrayInfo | None:
    """The object after all view operations, or why there is none."""
    if not plan.views:
        return None
    view = obj
    for operation in plan.views:
        enter(Stage.VIEW, f"{operation[0]}")
        view, error = attempt(partial(apply_view, view, operation))
        if error is not None:
            return ArrayInfo(error=error)
        if is_declined(view):
            return ArrayInfo()
    held = Held(view, memory, groups, touch=touch, poke=True, is_view=True)
    info = replace(held.info, type=type_name(view))
    held.release()
    return info
