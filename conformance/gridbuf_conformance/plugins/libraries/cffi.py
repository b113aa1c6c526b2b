"""cffi's `ffi.buffer`: the bytes behind a C pointer, as an object of cffi's own type."""

from __future__ import annotations

from typing import Any

import cffi

from ...plan import Plan
from ...producer import Unsupported
from ...producers.base import FlatBytesProducer, flat_bytes
from .standard import MmapProducer


class CffiProducer(FlatBytesProducer):
    """`ffi.buffer` over an array that `ffi.new` made; the buffer keeps the array."""

    name = "cffi"

    def make(self, plan: Plan) -> Any:
        ffi = cffi.FFI()
        memory = ffi.new("unsigned char[]", plan.nbytes)
        result = ffi.buffer(memory, plan.nbytes)
        result[:] = plan.content()
        return result


class ReadOnlyProducer(CffiProducer):
    """`ffi.buffer` over `ffi.from_buffer` of read-only pages, which does not record it."""

    name = "cffi.readonly"
    capabilities = flat_bytes(readonly=(True,))

    def make(self, plan: Plan) -> Any:
        pages = MmapProducer().make(plan)
        if isinstance(pages, Unsupported):
            return pages
        ffi = cffi.FFI()
        return ffi.buffer(ffi.from_buffer(pages))
