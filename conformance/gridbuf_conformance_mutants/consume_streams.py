"""Consumers of the CUDA stream protocol, one of them right."""

from __future__ import annotations

from typing import Any

from .consumer import wrong
from .table import rows

row = rows(__name__)


class Wrapped:
    """What the consumer makes of a stream object."""

    def __init__(self, handle: int, owner: object) -> None:
        self.handle, self.owner = handle, owner

    def __cuda_stream__(self) -> tuple[int, int]:
        return 0, self.handle


class StreamConsumer:
    """The strict consumer of streams."""

    interfaces = ("cuda-stream",)

    def __call__(self, stream: Any) -> Any:
        version, handle = stream.__cuda_stream__()
        self.check_version(version)
        self.check_handle(handle)
        return self.result(handle, stream)

    def check_version(self, version: int) -> None:
        if version != 0:
            raise BufferError(f"the version is {version}, must be 0")

    def check_handle(self, handle: Any) -> None:
        if type(handle) is not int or handle < 0:
            raise ValueError(f"the handle is {handle!r}, must be an int >= 0")

    def result(self, handle: int, owner: object) -> Any:
        return Wrapped(handle, owner)


strict = StreamConsumer()


# fmt: off
row(wrong("CS-01"), StreamConsumer, "TakesAnyStreamVersion",
    "The version of the protocol is not looked at.", check_version=lambda self, version: None)
row(wrong("CS-02"), StreamConsumer, "UsesTheDefaultStream",
    "The default stream is used, whatever the handle is.",
    result=lambda self, handle, owner: Wrapped(0, owner))
row(wrong("CS-02"), StreamConsumer, "KeepsTheHandleIn32Bits",
    "The handle is kept in 32 bits.",
    result=lambda self, handle, owner: handle % 2**32)
row(wrong(weakens=("CS-02",)), StreamConsumer, "TakesNegativeHandles",
    "The handle is not looked at.", check_handle=lambda self, handle: None)
row(wrong(weakens=("CS-03",)), StreamConsumer, "ForgetsTheStreamObject",
    "The object that gave the handle is not held.",
    result=lambda self, handle, owner: Wrapped(handle, None))
# fmt: on
