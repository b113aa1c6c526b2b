"""The whole observation of one produced object: it, its views, a second product, and their life."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

from ..abi.descriptors import Rejected, descriptors_of, of_dlpack
from ..abi.device import DeviceError, Devices
from ..abi.dlpack import CPU, Exported
from ..abi.memory import POINTER_BYTES, Memory
from ..abi.pybuffer import HeldBuffer
from ..info import ArrayInfo, CapsuleInfo, DriverInfo, Observation, PendingInfo
from ..info.steps import enter
from ..info.values import attempt
from ..plan import Plan
from ..plan.producer import Unsupported, python_view
from . import life
from .buffer import MAIN_REQUESTS, buffer_info, hold_buffer, python_level_info
from .capsules import NEWEST, call_info, device_info, every_call_info, export
from .content import mapping_info, packed_content, poke_info, walk
from .dlpack_exchange import exchange_info
from .entries import use_entries, use_interfaces_as_entries
from .interface import (
    array_attribute_info,
    data_interface_info,
    domain_starts,
    gt4py_info,
    interface_info,
    naming_info,
    probe_info,
    struct_info,
)
from .streams import pending_info, stream_info

__all__ = ["Held", "observe"]

_TOUCH_LIMIT_BYTES = 2**26


def observe(
    obj: Any,
    plan: Plan | None,
    *,
    groups: frozenset[str],
    again: Callable[[], Any] | None = None,
    apply_view: Callable[[Any, Any], Any] | None = None,
    devices: Devices | None = None,
    on_stream: Callable[[int], Any] | None = None,
    has_memory: bool = True,
) -> Observation:
    """Measures `obj`, and returns info that survives JSON. Never raises for a faulty object.

    `plan` is the request; None for a live object without a plan, which is never written to and
    never put at risk. `again` makes a second object from the same plan; without it nothing is said about
    second products and drop orders. `apply_view` applies one view operation (default: Python's own means).
    `devices` reaches device memory, `on_stream` makes the producer work on a stream (`Producer.on_stream`).
    `has_memory` is the producer's word on its objects (`Producer.has_memory`).
    `groups` are the rule groups that will be judged: what none of them needs is not measured.
    """
    memory = Memory(devices)
    info = Observation(type(obj).__qualname__, POINTER_BYTES, memory.map.known, live=plan is None)
    info.has_memory = bool(has_memory)
    is_filled = plan is None or (plan.fill is not None and plan.nbytes < _TOUCH_LIMIT_BYTES)
    touch = has_memory and is_filled
    subject = Held(obj, memory, groups, touch=touch, poke=plan is not None)
    info.root = subject.info
    info.repeated = _repeated(obj, memory)
    if "GT" in groups:
        info.gt4py = gt4py_info(obj)
        info.domain_starts = domain_starts(obj)
        if subject.info.gt_data is not None:
            info.naming = naming_info(obj)
        if plan is not None and (not subject.found or set(subject.found) == {"DL"}):
            info.array_attribute = array_attribute_info(obj, memory)
    if plan is not None:
        info.view = _viewed(obj, plan, apply_view or python_view, memory, groups, touch)
    if again is not None:
        info.second = _second(again, memory)
    if touch and not _is_large(subject):
        info.life = life.life_info(obj, subject, memory, again, plan)
        if again is not None and plan is not None and plan.ndim <= 2 and not plan.views:
            info.pending = _pending(subject, again, on_stream, memory)
    info.driver = _driver(memory.devices, subject)
    info.switched_off = _switched_off()
    enter("teardown")
    subject.release()
    return info


def _pending(
    subject: Held, again: Callable[[], Any], on_stream: Callable[[int], Any] | None, memory: Memory
) -> PendingInfo | None:
    if all(array.device[0] == CPU for array in subject.found.values()):
        return None
    try:
        return pending_info(again, on_stream, memory)
    except DeviceError as error:
        return PendingInfo(error=str(error))


def _driver(devices: Devices, subject: Held) -> DriverInfo:
    """Which driver answered for device memory; asked only where it matters."""
    if all(array.device[0] == CPU for array in subject.found.values()):
        return DriverInfo(reason="the array is in host memory")
    access = devices.access
    return DriverInfo(access.name) if access else DriverInfo(reason=devices.reason)


def _switched_off() -> list[str]:
    """The set environment variables by which a library's duties of the CUDA array interface are switched off."""
    options: dict[str, tuple[str, ...]] = {
        "_CUDA_ARRAY_INTERFACE_SYNC": ("0", "false", "off", "no"),
        "_CUDA_ARRAY_INTERFACE_EXPORT_VERSION": ("0", "1", "2"),
    }
    return sorted(
        name
        for name, value in os.environ.items()
        for ending, off in options.items()
        if name.endswith(ending) and value.strip().lower() in off
    )


def _is_large(subject: Held) -> bool:
    """Whether making more of such objects costs too much: padding can make a large hull of few elements."""
    return any(
        a.hull and a.hull[1] - a.hull[0] >= _TOUCH_LIMIT_BYTES for a in subject.found.values()
    )


def _is_small(capsule: CapsuleInfo) -> bool:
    """Whether the tensor of a capsule can be copied without much ado."""
    try:
        return of_dlpack(capsule).nbytes < _TOUCH_LIMIT_BYTES
    except Rejected:  # refused, or no array: there is nothing large to copy
        return True


class Held:
    """One object with everything that it exported: info, and the descriptors that stay valid until `release`."""

    def __init__(
        self,
        obj: Any,
        memory: Memory,
        groups: frozenset[str],
        *,
        touch: bool,
        poke: bool,
        is_view: bool = False,
    ) -> None:
        self.memory = memory
        self._deep = touch and poke and not is_view
        self._is_view = is_view
        probes = probe_info(obj)
        self.info = ArrayInfo(probes=probes)
        self._kept: list[Any] = []
        self._buffer: HeldBuffer | None = None
        present = {name for name, probe in probes.items() if probe.present}
        self._read_metadata(obj, present, groups, may_copy=touch)
        self.found = descriptors_of(self.info)
        if "CAI" in self.found:
            self.info.stream = stream_info(obj, self.found["CAI"], memory)
        self.info.mapping = mapping_info(self.found, memory)
        if touch:
            self._read_content(obj, poke)

    def release(self) -> None:
        """Gives everything back: the buffer first, then capsules and dicts."""
        if self._buffer is not None:
            self._buffer.release()
        self._kept.clear()

    def _read_metadata(
        self, obj: Any, present: set[str], groups: frozenset[str], *, may_copy: bool
    ) -> None:
        info, memory = self.info, self.memory
        if "__array_interface__" in present:
            info.ai, dictionary = interface_info(obj, memory)
            self._kept.append(dictionary)
        if "__array_struct__" in present:
            info.struct, capsule = struct_info(obj, memory)
            self._kept.append(capsule)
        if "__cuda_array_interface__" in present:
            info.cai, dictionary = interface_info(obj, memory, attribute="__cuda_array_interface__")
            self._kept.append(dictionary)
        if "__gt_data_interface__" in present:
            info.gt_data, self._entries = data_interface_info(obj)
        info.pb = buffer_info(obj, memory)
        info.python = python_level_info(obj)
        self._buffer = hold_buffer(obj)
        if "__dlpack_device__" in present:
            info.device = device_info(obj)
        if "__dlpack__" in present:
            info.main = self._hold_export(obj)
            if groups & {"DL", "DP", "XA"}:
                info.dlpack = every_call_info(
                    obj,
                    memory,
                    may_copy=may_copy and _is_small(info.main),
                    device_type=(info.device_pair or [CPU])[0],
                )
        if "DX" in groups:
            device = info.device_pair or [CPU, 0]
            info.exchange = exchange_info(obj, memory, device=device, deep=self._deep)

    def _hold_export(self, obj: Any) -> CapsuleInfo:
        """Keeps one capsule: versioned if there is such a thing, else legacy."""
        refusal = CapsuleInfo()
        for name, keywords in (("max_version=(1,3)", NEWEST), ("legacy", {})):
            exported = export(obj, self.memory, name, keywords)
            if isinstance(exported, Exported):
                self._kept.append(exported)
                enter(f"dl:struct={name}")
                return exported.info()
            refusal = exported
        return refusal

    def _read_content(self, obj: Any, poke: bool) -> None:
        walks = {name: walk(array, self.memory) for name, array in self.found.items()}
        walks.update(self._settled(walks))
        walks.update(self._copied_content(obj))
        if set(self.found) == {"DL"}:
            walks["DL strides as bytes"] = self._walk_as_if_strides_were_bytes()
        self.info.walk = {name: content for name, content in walks.items() if content is not None}
        self.info.packed = packed_content(self.info.main, self.memory)
        if poke:
            self.info.poke = poke_info(self.found, self.memory)
        data = self.info.gt_data
        if not self._is_view and data is not None and data.entries is not None:
            use_entries(obj, self._entries, data, self.memory, write=poke)
        elif poke and not self._is_view and self._has_mirrors():
            self.info.standing = use_interfaces_as_entries(obj, self.memory)

    def _has_mirrors(self) -> bool:
        """Whether the host's and CUDA's array interface name different memory, and no data interface speaks of it."""
        host, device = self.found.get("AI"), self.found.get("CAI")
        if host is None or device is None or self.info.gt_data is not None:
            return False
        return host.address != device.address

    def _settled(self, walks: dict[str, str | None]) -> dict[str, str | None]:
        """Device content once more after the whole device has come to rest; "late" says where it had not."""
        on_device = [name for name, array in self.found.items() if array.device[0] != CPU]
        access = self.memory.devices.access if on_device else None
        if access is None:
            return {}
        try:
            access.synchronize(0)
        except DeviceError as error:
            self.info.device_error = str(error)
            return {}
        settled = {name: walk(self.found[name], self.memory) for name in on_device}
        self.info.late = {
            name: settled[name] != walks[name]
            for name in on_device
            if None not in (settled[name], walks[name])
        }
        return settled

    def _walk_as_if_strides_were_bytes(self) -> str | None:
        """Where DLPack alone describes an array, the reading that a producer of byte strides would mean."""
        array = self.found["DL"]
        if array.itemsize < 2:
            return None
        strides = tuple(stride // array.itemsize for stride in array.strides)
        return walk(replace(array, strides=strides), self.memory)

    def _copied_content(self, obj: Any) -> dict[str, str | None]:
        """What an export by copy holds: read while its capsule lives."""
        before = self.info.dlpack.get("copy=True")
        if before is None or before.error is not None:
            return {}
        exported = export(obj, self.memory, "copy=True", {**NEWEST, "copy": True})
        if isinstance(exported, CapsuleInfo):
            return {}
        info = exported.info()
        try:
            array = replace(of_dlpack(info), interface="DL copy=True")
        except Rejected:
            return {}
        self.info.copied = info
        return {"DL copy=True": walk(array, self.memory)}


def light_info(obj: Any, memory: Memory) -> tuple[ArrayInfo, list[Any]]:
    """The metadata of AI, PB and DL read once, and what has to be kept alive while it is used."""
    info = ArrayInfo()
    kept: list[Any] = []
    present, _ = attempt(lambda: hasattr(obj, "__array_interface__"))
    if present:
        info.ai, dictionary = interface_info(obj, memory)
        kept.append(dictionary)
    present, _ = attempt(lambda: hasattr(obj, "__cuda_array_interface__"))
    if present:
        info.cai, dictionary = interface_info(obj, memory, attribute="__cuda_array_interface__")
        kept.append(dictionary)
    info.pb = buffer_info(obj, memory, MAIN_REQUESTS)
    present, _ = attempt(lambda: hasattr(obj, "__dlpack__"))
    if present:
        info.main = call_info(obj, memory, "max_version=(1,3)", NEWEST)
        if info.main.error is not None:
            info.main = call_info(obj, memory, "legacy", {})
    return info, kept


def _repeated(obj: Any, memory: Memory) -> list[ArrayInfo]:
    """Light info again: once here, and once on each of two threads that ask at the same time."""
    results = [light_info(obj, memory)]
    gate = threading.Barrier(2)

    def ask() -> None:
        gate.wait()
        results.append(light_info(obj, Memory()))

    enter("again:threads")
    threads = [threading.Thread(target=ask) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return [info for info, _ in results]


def _second(again: Callable[[], Any], memory: Memory) -> ArrayInfo:
    """A second product of the plan, measured while the first one lives."""
    enter("again:produce")
    other, error = attempt(again)
    if error is not None:
        return ArrayInfo(error=error)
    if isinstance(other, Unsupported):
        return ArrayInfo(unsupported=other.reason)
    info, kept = light_info(other, memory)
    info.mapping = mapping_info(descriptors_of(info), memory)
    enter("life:drop=second")
    kept.clear()
    del other
    return info


def _viewed(
    obj: Any,
    plan: Plan,
    apply_view: Callable[[Any, Any], Any],
    memory: Memory,
    groups: frozenset[str],
    touch: bool,
) -> ArrayInfo | None:
    """The object after all view operations, or why one is not to be had."""
    if not plan.views:
        return None
    view = obj
    for operation in plan.views:
        enter(f"view:{operation[0]}")
        view, error = attempt(partial(apply_view, view, operation))
        if error is not None:
            return ArrayInfo(error=error, operation=list(operation))
        if isinstance(view, Unsupported):
            return ArrayInfo(unsupported=view.reason, operation=list(operation))
    held = Held(view, memory, groups, touch=touch, poke=True, is_view=True)
    info = replace(held.info, type=type(view).__qualname__)
    held.release()
    return info
