"""Info on the CUDA array interface and on streams: is the stream that an interface names alive, and
does an export wait for the work on it?

Work is kept pending on purpose: a slow fill is put on a stream, then the array is exported and read
as a consumer would. Old bytes mean that the consumer was not ordered after the work. The stream
belongs to the suite if the producer can be told to work on it (`Producer.on_stream`), else the
stream that the array itself names.
"""

from __future__ import annotations

import contextlib
import gc
import os
import sys
from collections.abc import Callable
from typing import Any

from ...abi.descriptors import Descriptor, Rejected
from .descriptor import of_cuda_interface
from ...interfaces.dlpack_structs.descriptor import of_dlpack
from ...abi.device import DeviceAccess, DeviceError, DeviceSpace
from ...interfaces.dlpack_structs.structs import CPU, Exported
from ...abi.memory import Memory
from ...info import ArrayInfo, InterfaceInfo, LifeInfo, Observation, PendingInfo, StreamInfo
from ...info.steps import Stage, enter
from ...info.values import attempt, has
from ...plan.producer import is_declined
from ...interfaces.dlpack_protocol.measure import NEWEST, export
from ...interfaces.dlpack_exchange.measure import exchange_table
from ...measure.held import Held
from ...measure.interface import interface_info

_SLOW_MILLISECONDS = 20


_ATTRIBUTE = "__cuda_array_interface__"


def _interface_info(obj: Any, memory: Memory) -> tuple[InterfaceInfo, Any]:
    return interface_info(obj, memory, attribute=_ATTRIBUTE, stage=Stage.CAI)


def add_light(info: ArrayInfo, obj: Any, memory: Memory) -> Any:
    """Reads the dict once, and returns it."""
    if not has(obj, _ATTRIBUTE):
        return None
    info.cai, dictionary = _interface_info(obj, memory)
    return dictionary


def add_metadata(held: Held, obj: Any, present: set[str]) -> None:
    """Reads the dict, and keeps it."""
    if _ATTRIBUTE in present:
        held.info.cai, dictionary = _interface_info(obj, held.memory)
        held.kept.append(dictionary)


def add_streams(held: Held, obj: Any) -> None:
    """Asks the driver whether the named stream is alive."""
    if "CAI" in held.found:
        held.info.stream = stream_info(obj, held.found["CAI"], held.memory)


def add_life(info: LifeInfo, held: Held, obj: Any) -> None:
    """Counts references before, and while eight dicts are held."""
    if "CAI" in held.found:
        before = sys.getrefcount(obj)
        dictionaries = [_interface_info(obj, held.memory)[1] for _ in range(8)]
        info.cai_references = [before, sys.getrefcount(obj)]
        dictionaries.clear()


def add_attributes(info: Observation, obj: Any, groups: frozenset[str]) -> None:
    """Notes the environment variables by which a library's duties are switched off."""
    info.switched_off = _switched_off()


def add_pending(
    held: Held, again: Callable[[], Any], on_stream: Callable[[int], Any] | None
) -> PendingInfo | None:
    """`pending_info` for an object in device memory."""
    if all(array.device[0] == CPU for array in held.found.values()):
        return None
    try:
        return pending_info(again, on_stream, held.memory)
    except DeviceError as error:
        return PendingInfo(error=str(error))


def _switched_off() -> list[str]:
    """The environment variables, if set, that switch off duties of the CUDA array interface."""
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


def stream_info(obj: Any, array: Descriptor, memory: Memory) -> StreamInfo | None:
    """Is the CUDA array interface's stream alive, also without its dict? None without a driver.

    `error` is the driver's word.
    """
    access = memory.devices.access
    if access is None or array.stream is None:
        return None
    enter(Stage.CAI, "stream")
    error = dead(access, array.stream)
    if error is not None:
        return StreamInfo(live=False, error=error)
    info, dictionary = _interface_info(obj, memory)
    try:
        stream = of_cuda_interface(info).stream
    except Rejected:
        return StreamInfo(live=True)
    enter(Stage.CAI, "stream-after")
    del dictionary
    gc.collect()
    error = None if stream is None else dead(access, stream)
    return StreamInfo(live=True, live_after=error is None, error=error)


def dead(access: DeviceAccess, stream: int) -> str | None:
    """Why the handle is not that of a live stream, in the driver's words; None if it is."""
    try:
        access.check_stream(stream)
    except DeviceError as error:
        return str(error).partition(":")[0]
    return None


def pending_info(
    again: Callable[[], Any], on_stream: Callable[[int], Any] | None, memory: Memory
) -> PendingInfo | None:
    """For each way out of a fresh object with pending work: did the reader get that work's bytes?

    The ways are "CAI", "DL" and "DL dl_device", None for one that is not there or cannot be read;
    "CAI stream" tells whether that interface named a stream, "DX stream" whether the exchange table
    named the suite's own. None without a device or a driver.
    """
    access = memory.devices.access
    if access is None:
        return None
    stream = access.create_stream()
    try:
        context = on_stream(stream) if on_stream is not None else None
        with context or contextlib.nullcontext():
            enter(Stage.AGAIN, "produce")
            fresh, error = attempt(again)
            if error is not None or is_declined(fresh):
                return None
            info = _Pending(fresh, access, memory, stream if context is not None else None).info()
        enter(Stage.SLOW, "teardown")
        access.synchronize(0)
        return info
    finally:
        access.destroy_stream(stream)


class _Pending:
    """One fresh object, and the stream that its work is put on."""

    def __init__(self, obj: Any, access: DeviceAccess, memory: Memory, stream: int | None) -> None:
        self._obj, self._access, self._memory = obj, access, memory
        self._own_stream = stream
        self._value = 0x41

    def info(self) -> PendingInfo | None:
        array, named = self._array()
        stream = self._own_stream if self._own_stream is not None else named
        if array is None or array.span is None or stream is None:
            return None
        if not DeviceSpace(self._access, None).readable(*array.span):
            return None
        seen: dict[str, bool | None] = {}
        seen["CAI"] = self._through_cuda_interface(array, stream, seen)
        seen["DL"] = self._through_dlpack(array, stream)
        seen["DL dl_device"] = self._to_the_host(array, stream)
        if self._own_stream is not None:
            seen["DX stream"] = self._exchange_stream(array)
        return PendingInfo(seen=seen)

    def _array(self) -> tuple[Descriptor | None, int | None]:
        """Where the memory is, and the stream that the object itself names."""
        info, _ = _interface_info(self._obj, self._memory)
        with contextlib.suppress(Rejected):
            if info.error is None:
                array = of_cuda_interface(info)
                return array, array.stream
        exported = export(self._obj, self._memory, "again", NEWEST)
        with contextlib.suppress(Rejected):
            if isinstance(exported, Exported):
                return of_dlpack(exported.info()), None
        return None, None

    def _through_cuda_interface(
        self, array: Descriptor, stream: int, seen: dict[str, bool | None]
    ) -> bool | None:
        value = self._keep_pending(array, stream)
        read, dictionary = _interface_info(self._obj, self._memory)
        try:
            exported = of_cuda_interface(read)
        except Rejected:
            return None
        if (
            exported.address != array.address
        ):  # another array on each access: CAI-30 and XA-13 say so
            return None
        seen["CAI stream"] = exported.stream is not None
        fresh = self._holds(exported, DeviceSpace(self._access, exported.stream), value)
        del dictionary
        return fresh

    def _through_dlpack(self, array: Descriptor, stream: int) -> bool | None:
        if not has(self._obj, "__dlpack__"):
            return None
        value = self._keep_pending(array, stream)
        consumer = self._access.create_stream()
        try:
            keywords = {**NEWEST, "stream": consumer}
            exported = export(self._obj, self._memory, "slow", keywords)
            if not isinstance(exported, Exported):
                return None
            return self._holds(
                of_dlpack(exported.info()), DeviceSpace(self._access, consumer), value
            )
        except Rejected:
            return None
        finally:
            self._access.synchronize(consumer)
            self._access.destroy_stream(consumer)

    def _to_the_host(self, array: Descriptor, stream: int) -> bool | None:
        if not has(self._obj, "__dlpack__"):
            return None
        value = self._keep_pending(array, stream)
        exported = export(self._obj, self._memory, "slow", {**NEWEST, "dl_device": (CPU, 0)})
        if not isinstance(exported, Exported):
            return None
        try:
            copy = of_dlpack(exported.info())
        except Rejected:
            return None
        return self._holds(copy, self._memory, value) if copy.device[0] == CPU else None

    def _exchange_stream(self, array: Descriptor) -> bool | None:
        table = exchange_table(self._obj, self._memory)
        if table is None:
            return None
        enter(Stage.DX, "stream")
        device = export(self._obj, self._memory, "again", NEWEST)
        info = device.info() if isinstance(device, Exported) else None
        pair = info.device if info is not None and info.is_tensor else array.device
        answer = table.current_stream(pair)
        return answer.result == 0 and answer.value == self._own_stream

    def _keep_pending(self, array: Descriptor, stream: int) -> int:
        """Settles all, then leaves a slow fill of the hull on the stream; returns its byte."""
        self._access.synchronize(0)
        self._value += 1
        low, high = array.span or (array.address, array.address)  # `info()` lets no empty array in
        enter(Stage.SLOW, "fill")
        self._access.slow_fill(low, self._value, high - low, _SLOW_MILLISECONDS, stream)
        return self._value

    @staticmethod
    def _holds(array: Descriptor, space: Any, value: int) -> bool | None:
        enter(Stage.SLOW, "read")
        held = space.read(array.address, array.itemsize)
        return None if held is None else held == bytes([value]) * array.itemsize
