"""Defects of the CUDA array interface (CAI rules), on the zoo's device.

The arrays here have no other interface, except where a defect can only be told by comparing with
another interface.
"""

from __future__ import annotations

import functools
from typing import ClassVar

from .device import (
    DEVICE,
    LEGACY,
    DeviceMemory,
    ExportsCudaInterface,
    ExportsDeviceDLPack,
)
from .memory import Block
from .mutant import faulty, faulty_on
from .reference import ExportsDLPack, Memory
from .table import rows

row = rows(__name__)


class Base(ExportsCudaInterface, DeviceMemory):
    """Only `__cuda_array_interface__`."""


class _WithDLPack(ExportsCudaInterface, ExportsDeviceDLPack, DeviceMemory):
    """DLPack next to it."""


class _Edited(Base):
    """A right dict with some keys changed."""

    changes: ClassVar[dict] = {}

    def cuda_interface(self) -> dict:
        return {**super().cuda_interface(), **self.changes}


def _edited(*breaks: str, advises: tuple[str, ...] = (), **changes: object):
    """A mutant whose dict has other values under these keys."""

    def named(kind: type) -> type:
        members = {"changes": changes, "__doc__": kind.__doc__, "__module__": kind.__module__}
        array_type = type(kind.__name__, (_Edited,), members)
        return faulty_on("gpu", *breaks, advises=advises)(array_type)

    return named


# --- form ---------------------------------------------------------------------------------------


# fmt: off
row(faulty_on("gpu", "CAI-01"), DeviceMemory, "MethodInsteadOfProperty",
    "`__cuda_array_interface__` is a method.", __cuda_array_interface__=lambda self: {})
# fmt: on


@faulty_on("gpu", "CAI-02")
class CudaVersionMissing(Base):
    """The dict has no version."""

    def cuda_interface(self) -> dict:
        interface = super().cuda_interface()
        del interface["version"]
        return interface


@faulty_on("gpu", "CAI-03")
class CudaShapeIsAList(Base):
    """`shape` is a list."""

    def cuda_interface(self) -> dict:
        return {**super().cuda_interface(), "shape": list(self.shape)}


@_edited("CAI-04", typestr="bfloat16")
class CudaTypestrIsAName:
    """`typestr` is the name of a type."""


@_edited("CAI-04", typestr="<i3", descr=None)
class CudaSizeOfNoType:
    """`typestr` has a size that integers do not have."""


@_edited("CAI-05", data=(None, False))
class PointerIsNone:
    """The pointer is None."""


@faulty_on("gpu", "CAI-05")
class FlagIsAnInt(Base):
    """The read-only flag is an int."""

    def cuda_interface(self) -> dict:
        interface = super().cuda_interface()
        return {**interface, "data": (interface["data"][0], int(self.readonly))}


@faulty_on("gpu", "CAI-06")
class EmptyArrayKeepsItsPointer(Base):
    """An array without elements keeps the address of its block."""

    def cuda_interface(self) -> dict:
        return {**super().cuda_interface(), "data": (self.address, self.readonly)}


@faulty_on("gpu", "CAI-07")
class HostMemoryUnderCudasName(ExportsCudaInterface, Memory):
    """The interface is exported for ordinary host memory."""

    stream = LEGACY

    @staticmethod
    def new_block(length_bytes: int, kind: str) -> Block:
        return Block(length_bytes)


@faulty_on("gpu", "CAI-08")
class ReadOnlyNotTold(_WithDLPack):
    """The flag says writable for read-only arrays; that of DLPack is right."""

    def cuda_interface(self) -> dict:
        interface = super().cuda_interface()
        return {**interface, "data": (interface["data"][0], False)}


@_edited("CAI-09", version="3")
class CudaVersionIsText:
    """`version` is a str."""


@faulty_on("gpu", "CAI-10")
class StridesAlwaysLeftOut(_WithDLPack):
    """Strides are None for every layout; those of DLPack are right."""

    def cuda_interface(self) -> dict:
        return {**super().cuda_interface(), "strides": None}


@faulty_on("gpu", "CAI-11")
class CudaStridesAreAList(Base):
    """`strides` is a list."""

    def cuda_interface(self) -> dict:
        return {**super().cuda_interface(), "strides": list(self.strides)}


@faulty_on("gpu", "CAI-12")
class StridesLeaveTheAllocation(Base):
    """The first stride is a mebibyte too long."""

    def cuda_interface(self) -> dict:
        interface = super().cuda_interface()
        if not self.ndim or self.is_untouched:
            return interface
        return {**interface, "strides": (self.strides[0] + 2**20, *self.strides[1:])}


@_edited("CAI-14", descr=[("a", "<f8", "twice")])
class CudaDescrWithTextAsRepeat:
    """The repeat shape of a field in `descr` is a str."""


@_edited(advises=("CAI-15",), mask=(True, False))
class CudaMaskIsATuple:
    """`mask` is a tuple of bools."""


@_edited("CAI-23", owner=object())
class OwnerInTheDict:
    """The dict holds an object under its own key."""


@faulty_on("gpu", "CAI-23")
class DictKeepsTheArray(Base):
    """Each dict keeps the array alive."""

    def cuda_interface(self) -> dict:
        return _OwningDict(super().cuda_interface()).of(self)


class _OwningDict(dict):
    """A dict with a reference that none of its keys shows."""

    def of(self, owner: object) -> _OwningDict:
        self.owner = owner
        return self


@faulty("CAI-02", advises=["CAI-24"])
class HostArrayAnswersNothing(ExportsDLPack, Memory):
    """The attribute of a host array is an empty dict, not an AttributeError."""

    @property
    def __cuda_array_interface__(self) -> dict:
        return {}


@faulty_on("gpu", "CAI-25")
class AnotherDeviceNamed(_WithDLPack):
    """DLPack says device 1, the memory is device 0's."""

    @property
    def device(self) -> tuple[int, int]:
        return 2, 1


@faulty_on("gpu", "CAI-26")
class CudaOrderIsAlwaysNative(Base):
    """Swapped numbers are declared native."""

    def cuda_interface(self) -> dict:
        interface = super().cuda_interface()
        return {**interface, "typestr": self.element.typestr(False), "descr": None}


@faulty_on("gpu", advises=["CAI-21", "CAI-27"])
class VersionOneWithStrides(Base):
    """Version 1 with strides, to which it gives no meaning."""

    def cuda_interface(self) -> dict:
        interface = super().cuda_interface()
        del interface["stream"]
        return {**interface, "version": 1, "strides": self.strides}


@faulty_on("gpu", advises=["CAI-28"])
class HipUnderCudasName(_WithDLPack):
    """HIP memory that names CUDA's legacy default stream."""

    @property
    def device(self) -> tuple[int, int]:
        return 10, 0

    def check_keywords(self, stream, max_version, dl_device) -> None:
        if stream in (1, 2):
            raise BufferError("streams 1 and 2 mean nothing on ROCm")
        super().check_keywords(None if stream == 0 else stream, max_version, dl_device)

    def hand_over(self, stream: int | None) -> None:
        super().hand_over(None if stream == 0 else stream)


@faulty_on("gpu", "CAI-11", "CAI-29")
class ZeroDimensionsHaveAStride(Base):
    """An array without dimensions has one stride."""

    def cuda_interface(self) -> dict:
        interface = super().cuda_interface()
        return interface if self.ndim else {**interface, "strides": (self.item_bytes,)}


@faulty_on("gpu", "XA-13", advises=["CAI-30"])
class CudaAddressMoves(Base):
    """Each access describes a fresh copy."""

    def cuda_interface(self) -> dict:
        if self.is_untouched:
            return super().cuda_interface()
        moved = self.duplicate()
        _copies.append(moved)
        address = 0 if self.is_empty else moved.address
        return {**super().cuda_interface(), "data": (address, self.readonly)}


_copies: list[Memory] = []


# --- streams ------------------------------------------------------------------------------------


@_edited("CAI-16", stream=0)
class StreamZero:
    """The stream is 0."""


@_edited("CAI-16", stream=True)
class StreamIsABool:
    """The stream is a bool."""


@_edited("CAI-17", stream=0x7777)
class StreamIsNone:
    """The handle is none of a live stream."""


class _FilledLate(Base):
    """The content is written by work on a second stream."""

    @functools.cached_property
    def second(self) -> int:
        return DEVICE.create_stream()

    def fill(self, content: bytes) -> None:
        write = functools.partial(super().fill, content)
        DEVICE.queue(self.second).append(write)


@faulty_on("gpu", "CAI-18")
class SecondStreamIsNotJoined(_FilledLate):
    """The named stream does not wait for the stream that has the work."""


@faulty_on("gpu", "CAI-18")
class AnotherStreamIsNamed(Base):
    """The legacy default stream is named, also if the work is on another stream."""

    def cuda_interface(self) -> dict:
        return {**super().cuda_interface(), "stream": LEGACY}


@_edited("CAI-19", stream=None)
class NoStreamIsNamed:
    """No stream is named, and the producer does not wait for the work."""


@faulty_on("gpu", advises=["CAI-21"])
class VersionTwoByDefault(Base):
    """The dict has version 2 without a stream, and the producer does not wait for pending work."""

    def fill(self, content: bytes) -> None:
        super().fill(content)
        DEVICE.synchronize(0)

    def cuda_interface(self) -> dict:
        described = {**super().cuda_interface(), "version": 2}
        del described["stream"]
        return described


@faulty_on("gpu", "CAI-22", "XA-13", advises=["CAI-30"])
class StreamDiesWithTheDict(Base):
    """Each dict has its own stream, which is destroyed when the dict is."""

    def cuda_interface(self) -> dict:
        stream = DEVICE.create_stream()
        DEVICE.order_after(stream, self.stream)
        return _StreamDict(super().cuda_interface(), stream=stream)


class _StreamDict(dict):
    def __del__(self) -> None:
        DEVICE.destroy_stream(self["stream"])
