"""pyzmq's `Frame`: a message that exports its bytes; without a copy, its source's memory."""

from __future__ import annotations

import zmq

from ...plan import Plan
from ...producer import Unsupported
from ...producers.base import FlatBytesProducer, flat_bytes
from .standard import MmapProducer

_READONLY = MmapProducer()


class FrameProducer(FlatBytesProducer):
    """`zmq.Frame` of a copy; for read-only plans a frame over pages that cannot be written."""

    name = "pyzmq"
    capabilities = flat_bytes(readonly=(False, True))

    def make(self, plan: Plan) -> zmq.Frame | Unsupported:
        if not plan.readonly:
            return zmq.Frame(plan.content(), copy=True)
        if not plan.nbytes:
            return Unsupported("pyzmq: a read-only frame without bytes has no page")
        return zmq.Frame(_READONLY.make(plan), copy=False)
