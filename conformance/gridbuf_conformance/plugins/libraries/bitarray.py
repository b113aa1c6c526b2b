"""The package bitarray: bits, eight to a byte, exported as bytes. A bitarray can grow; a
frozenbitarray is read-only.
"""

from __future__ import annotations

import bitarray

from ...plan import Plan
from ...producers.base import FlatBytesProducer, flat_bytes


class BitarrayProducer(FlatBytesProducer):
    """`bitarray.bitarray`, for read-only plans `bitarray.frozenbitarray`."""

    name = "bitarray"
    capabilities = flat_bytes(readonly=(False, True))

    def make(self, plan: Plan) -> bitarray.bitarray:
        bits = bitarray.bitarray()
        bits.frombytes(plan.content())
        return bitarray.frozenbitarray(bits) if plan.readonly else bits
