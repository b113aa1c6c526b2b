"""One object with all that it exported: what it says, and the content of its descriptors."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

from ..abi.descriptors import Descriptor, Rejected
from ..interfaces.descriptors import descriptors_of
from ..interfaces.dlpack_structs.descriptor import of_dlpack
from ..abi.device import DeviceError
from ..interfaces.dlpack_structs.structs import CPU, Exported
from ..abi.memory import Memory
from ..interfaces.buffer_protocol.pybuffer import HeldBuffer
from ..info import ArrayInfo, CapsuleInfo
from ..interfaces import modules
from ..info.steps import Stage, enter
from ..interfaces.buffer_protocol.measure import buffer_info, hold_buffer, python_level_info
from ..interfaces.dlpack_protocol.measure import NEWEST, device_info, every_call_info, export
from .content import mapping_info, packed_content, poke_info, walk
from ..interfaces.dlpack_exchange.measure import exchange_info
from .interface import interface_info, probe_info, struct_info
from .reuse import free_memory

TOUCH_LIMIT_BYTES = 2**26


def hooks(name: str) -> Iterator[Callable[..., Any]]:
    """What plug-ins' interfaces add to a stage of the measurement: functions of their `measure`.

    They are `add_light`, `add_metadata`, `add_streams`, `add_content`, `add_life`, `add_attributes`
    and `add_pending`.
    """
    for module in modules("measure"):
        if hasattr(module, name):
            yield getattr(module, name)


class Held:
    """One object with everything that it exported: info, and descriptors valid until `release`.

    `kept` has the objects whose memory the descriptors name. `data_interface` is the value of
    `__gt_data_interface__`.
    """

    data_interface: Any = None

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
        self.is_view = is_view
        probes = probe_info(obj)
        self.info = ArrayInfo(probes=probes)
        self.kept: list[Any] = []
        self._buffer: HeldBuffer | None = None
        present = {name for name, probe in probes.items() if probe.present}
        self._read_metadata(obj, present, groups, may_copy=touch)
        self.found = descriptors_of(self.info)
        self.info.free = free_memory(obj, self._held_exports())
        for hook in hooks("add_streams"):
            hook(self, obj)
        self.info.mapping = mapping_info(self.found, memory)
        if touch:
            self._read_content(obj, poke)

    def release(self) -> None:
        """Gives everything back: the buffer first, then capsules and dicts."""
        if self._buffer is not None:
            self._buffer.release()
        self.kept.clear()

    def view_is_unchanged(self) -> bool | None:
        """Whether the open view has the fields that it had at first; None without a view."""
        enter(Stage.PB, "metadata")
        return None if self._buffer is None else self._buffer.info(self.memory) == self._view

    def _read_metadata(
        self, obj: Any, present: set[str], groups: frozenset[str], *, may_copy: bool
    ) -> None:
        info, memory = self.info, self.memory
        if "__array_interface__" in present:
            info.ai, dictionary = interface_info(obj, memory)
            self.kept.append(dictionary)
        if "__array_struct__" in present:
            info.struct, capsule = struct_info(obj, memory)
            self.kept.append(capsule)
        for hook in hooks("add_metadata"):
            hook(self, obj, present)
        info.pb = buffer_info(obj, memory)
        info.python = python_level_info(obj)
        self._buffer = hold_buffer(obj)
        self._view = None if self._buffer is None else self._buffer.info(memory)
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

    def _held_exports(self) -> dict[str, Descriptor]:
        """`found` without a buffer that had another address than the one that is held now: where
        each view has separate memory, that of the released ones is free.
        """
        held = None if self._view is None else self._view.buf
        return {n: array for n, array in self.found.items() if n != "PB" or array.address == held}

    def _hold_export(self, obj: Any) -> CapsuleInfo:
        """Keeps one capsule: versioned if there is such a thing, else legacy."""
        refusal = CapsuleInfo()
        for name, keywords in (("max_version=(1,3)", NEWEST), ("legacy", {})):
            exported = export(obj, self.memory, name, keywords)
            if isinstance(exported, Exported):
                self.kept.append(exported)
                enter(Stage.DL, f"struct={name}")
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
        for hook in hooks("add_content"):
            hook(self, obj, poke)

    def _settled(self, walks: dict[str, str | None]) -> dict[str, str | None]:
        """Device content again after the device is synchronised; "late" says where it differs."""
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
        """Where only DLPack describes an array: how a producer of byte strides would mean it."""
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
        return {"DL copy=True": walk(array, self.memory)}


def _is_small(capsule: CapsuleInfo) -> bool:
    """Whether the tensor of a capsule can be copied directly."""
    try:
        return of_dlpack(capsule).nbytes < TOUCH_LIMIT_BYTES
    except Rejected:  # refused, or no array: there is nothing large to copy
        return True
