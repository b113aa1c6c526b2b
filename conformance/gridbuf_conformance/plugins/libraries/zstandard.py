"""python-zstandard's `BufferWithSegments` of many decompressed frames; one segment here."""

from __future__ import annotations

import struct

import zstandard

from ...plan import Plan
from ...producers.base import FlatBytesProducer, flat_bytes


class ZstandardProducer(FlatBytesProducer):
    """`BufferWithSegments(content, segments)[0]`: a `BufferSegment`, read-only."""

    name = "zstandard"
    capabilities = flat_bytes(readonly=(True,))

    def make(self, plan: Plan) -> zstandard.BufferSegment:
        whole = bytes(bytearray(plan.content()))
        return zstandard.BufferWithSegments(whole, struct.pack("=QQ", 0, plan.nbytes))[0]
