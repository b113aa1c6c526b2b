"""cffi's `ffi.buffer`: the bytes behind a C pointer, as an object of cffi's own type."""

from __future__ import annotations

from typing import Any

import cffi

from ..plan import Plan
from .base import FlatBytesProducer

__all__ = ["CffiProducer"]


class CffiProducer(FlatBytesProducer):
    """`ffi.buffer` over an array that `ffi.new` made; the buffer keeps the array."""

    name = "cffi"

    def make(self, plan: Plan) -> Any:
        ffi = cffi.FFI()
        memory = ffi.new("unsigned char[]", plan.nbytes)
        result = ffi.buffer(memory, plan.nbytes)
        result[:] = plan.content()
        return result
