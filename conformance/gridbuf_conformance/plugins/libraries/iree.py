"""IREE's `MappedMemory`: the bytes of a buffer of its runtime, mapped for the host."""

from __future__ import annotations

from functools import cache
from importlib.metadata import PackageNotFoundError, version

import iree.runtime

from ...plan import Plan
from ...producer import Unsupported
from ...producers.base import FlatBytesProducer, flat_bytes


@cache
def _device() -> iree.runtime.HalDevice:
    return iree.runtime.get_device("local-sync")


class IreeProducer(FlatBytesProducer):
    """`HalBuffer.map()` of a copy in the memory of the device "local-sync"; read-only."""

    name = "iree"
    capabilities = flat_bytes(readonly=(True,))

    def version(self) -> str:
        for distribution in ("iree-base-runtime", "iree-runtime"):
            try:
                return version(distribution)
            except PackageNotFoundError:
                continue
        return ""

    def make(self, plan: Plan) -> iree.runtime.MappedMemory | Unsupported:
        if not plan.nbytes:
            return Unsupported("iree: its allocator gives no empty buffers")
        return (
            _device()
            .allocator.allocate_buffer_copy(
                memory_type=iree.runtime.MemoryType.DEVICE_LOCAL
                | iree.runtime.MemoryType.HOST_VISIBLE,
                allowed_usage=iree.runtime.BufferUsage.DEFAULT | iree.runtime.BufferUsage.MAPPING,
                device=_device(),
                buffer=plan.content(),
            )
            .map()
        )
