"""Defects of DLPack on devices with streams, on the zoo's device: DL-18, DP-16 … DP-18, DP-24.

The arrays here have DLPack alone.
"""

from __future__ import annotations

from .device import DEVICE, DeviceBlock, DeviceMemory, ExportsDeviceDLPack
from .memory import Block
from .mutant import faulty_on
from .reference import CPU, Array


class Base(ExportsDeviceDLPack, DeviceMemory):
    """Only DLPack."""


@faulty_on("managed", "DL-18")
class ManagedCalledPinned(Base):
    """Managed memory is exported as page-locked host memory."""

    @property
    def device(self) -> tuple[int, int]:
        return 3, 0


@faulty_on("managed", "DL-18")
class ManagedCalledDeviceMemory(Base):
    """Managed memory is exported as device memory."""

    @property
    def device(self) -> tuple[int, int]:
        return 2, 0


@faulty_on("gpu", "GT-20")
class PinnedInsteadOfDeviceMemory(Base):
    """Page-locked host memory where device memory was requested, with a right description."""

    @staticmethod
    def new_block(length_bytes: int, kind: str) -> Block:
        return DeviceBlock(length_bytes, "pinned")


@faulty_on("gpu", "DP-16")
class StreamZeroAccepted(Base):
    """stream=0 is taken for the legacy default stream."""

    def check_keywords(self, stream, max_version, dl_device) -> None:
        super().check_keywords(None if stream == 0 else stream, max_version, dl_device)

    def hand_over(self, stream: int | None) -> None:
        super().hand_over(stream or None)


@faulty_on("gpu", "DP-16")
class PerThreadStreamRefused(Base):
    """stream=2 is refused."""

    def check_keywords(self, stream, max_version, dl_device) -> None:
        if stream == 2:
            raise BufferError("there is no per-thread default stream here")
        super().check_keywords(stream, max_version, dl_device)


@faulty_on("gpu", "DP-16")
class TextAcceptedAsStream(Base):
    """A stream given as text is converted."""

    def check_keywords(self, stream, max_version, dl_device) -> None:
        super().check_keywords(_number(stream), max_version, dl_device)

    def hand_over(self, stream: int | str | None) -> None:
        super().hand_over(_number(stream))


def _number(stream: int | str | None) -> int | None:
    return int(stream) if isinstance(stream, str) else stream


@faulty_on("gpu", "DP-17")
class RocmTakesCudasStreams(Base):
    """ROCm memory takes streams 1 and 2."""

    @property
    def device(self) -> tuple[int, int]:
        return 10, 0

    def check_keywords(self, stream, max_version, dl_device) -> None:
        super().check_keywords(None if stream == 0 else stream, max_version, dl_device)

    def hand_over(self, stream: int | None) -> None:
        super().hand_over(stream or None)


@faulty_on("gpu", "DP-18")
class ConsumerIsNotOrdered(Base):
    """The consumer's stream does not wait for the array's."""

    def hand_over(self, stream: int | None) -> None:
        """Nothing waits for anything."""


@faulty_on("gpu", "DP-18")
class TheWrongStreamWaits(Base):
    """The stream of the array waits for the consumer's stream, in the wrong direction."""

    def hand_over(self, stream: int | None) -> None:
        if stream != -1:
            DEVICE.order_after(self.stream, 1 if stream is None else stream)


@faulty_on("gpu", "DP-23")
class HostRequestIgnored(Base):
    """dl_device=(1, 0) gives the memory of the device."""

    def __dlpack__(self, *, dl_device=None, **keywords) -> object:
        return super().__dlpack__(dl_device=None if dl_device == CPU else dl_device, **keywords)


@faulty_on("gpu", advises=["DP-23"])
class NoWayToTheHost(Base):
    """dl_device=(1, 0) is refused."""

    def host_copy(self, versioned: bool, copy: bool | None) -> object:
        raise BufferError("this memory has no copy on the host")


@faulty_on("gpu", "DP-24")
class HostCopyIsNotSynchronized(Base):
    """The copy to the host is made before the pending work."""

    def host_copy(self, versioned: bool, copy: bool | None) -> object:
        self.check_describable(versioned)
        copied = self.copied_to(Block(self.total_bytes), Array)
        return copied.export(versioned, copied=True).capsule()
