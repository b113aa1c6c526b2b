"""cramjam's `Buffer`: Rust's bytes, what it decompresses into."""

from __future__ import annotations

import cramjam

from ...plan import Plan
from ...producers.base import FlatBytesProducer, flat_bytes


class CramjamProducer(FlatBytesProducer):
    """`cramjam.Buffer` of a copy; it exports read-only memory only."""

    name = "cramjam"
    capabilities = flat_bytes(readonly=(True,))

    def make(self, plan: Plan) -> cramjam.Buffer:
        return cramjam.Buffer(plan.content(), copy=True)
