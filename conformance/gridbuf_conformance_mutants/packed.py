"""Elements of less than a byte, packed as DLPack has it, and how they are not (DL-25, DL-26).

`PackedReference` is the right one: row-major tensors without padding, the first element in the
lowest bits.
"""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from typing import ClassVar

from gridbuf_conformance.plan import Plan
from gridbuf_conformance.plan.producer import Capabilities, Unsupported

from . import capsules
from .elements import Element
from .memory import Block
from .mutant import Mutant
from .reference import Exports, Memory, Reference

_ELEMENTS = {
    "float4_e2m1fn": Element("f", 1, "", (17, 4)),
    "float6_e2m3fn": Element("f", 1, "", (15, 6)),
    "float6_e3m2fn": Element("f", 1, "", (16, 6)),
    "int4": Element("i", 1, "", (0, 4)),
    "uint4": Element("u", 1, "", (1, 4)),
}

PLANS = tuple(
    Plan(shape=shape, dtype=dtype, fill=fill, readonly=readonly)
    for fill, (shape, dtype, readonly) in enumerate(
        (
            ((4,), "uint4", False),
            ((5,), "float4_e2m1fn", True),
            ((2, 3), "int4", False),
            ((3, 3), "float6_e2m3fn", False),
            ((), "float6_e3m2fn", False),
            ((2, 0), "uint4", False),
        )
    )
)


class PackedArray(Exports.DLPack):
    """An array whose strides count elements of less than a byte."""

    @property
    def bits(self) -> int:
        return self.element.dlpack[1]

    @property
    def packed_bytes(self) -> int:
        """Bytes that the elements take together."""
        return -(-self.total_bytes * self.bits // 8)

    def fill(self, content: bytes) -> None:
        self.write(self.packed(content))

    def packed(self, content: bytes) -> bytes:
        """The elements' lowest bits in a row, first element first."""
        digits = "".join(format(value, f"0{self.bits}b") for value in reversed(content))
        return int(digits or "0", 2).to_bytes(self.packed_bytes, "little")

    def write(self, raw: bytes) -> None:
        ctypes.memmove(self.address, raw, len(raw))

    def copied(self) -> PackedArray:
        block = Block(max(self.packed_bytes, 1))
        copy = type(self)(block, self.element, self.shape, self.strides, block.low)
        copy.write(ctypes.string_at(self.address, self.packed_bytes))
        return copy


class PackedReference(Reference):
    """The reference producer of packed elements."""

    name = "packed reference"
    array_type: ClassVar[type[Memory]] = PackedArray
    capabilities = Capabilities(
        dtypes=tuple(_ELEMENTS),
        max_ndim=5,
        layouts="C",
        byteorders=("native",),
        readonly=(False, True),
    )

    def produce(self, plan: Plan) -> Memory | Unsupported:
        if plan.dtype not in _ELEMENTS or plan.layout is not None or plan.alignment_size > 1:
            return Unsupported(
                "row-major elements of less than a byte, unaligned, and nothing else"
            )
        if plan.fill is None:
            return Unsupported("arrays without content are not made")
        return super().produce(plan)

    def element(self, plan: Plan) -> Element:
        return _ELEMENTS[plan.dtype]

    def apply_view(self, array: Memory, operation: Sequence) -> Unsupported:
        return Unsupported("a view could start inside a byte")


# --- defects ------------------------------------------------------------------------------------


class _Wrong(PackedReference, Mutant):
    """The producer of a wrong array."""

    plans = PLANS
    breaks = frozenset()


class HighestBitsFirst(_Wrong):
    """The first element is in the highest bits of its byte."""

    breaks = frozenset({"DL-25"})

    class array_type(PackedArray):
        """Big-endian bit order."""

        def packed(self, content: bytes) -> bytes:
            digits = "".join(format(value, f"0{self.bits}b") for value in content)
            return int(digits.ljust(8 * self.packed_bytes, "0") or "0", 2).to_bytes(
                self.packed_bytes, "big"
            )


class AByteForEachElement(_Wrong):
    """The type has 4 bits, and each element a whole byte, without the flag for padding."""

    breaks = frozenset({"DL-25"})

    class array_type(PackedArray):
        """Unpacked elements."""

        def fill(self, content: bytes) -> None:
            self.write(content)


class FourBitFloatSaysEight(_Wrong):
    """A float of 4 bits is exported with bits 8, one byte each."""

    breaks = frozenset({"DL-26"})
    plans = (Plan(shape=(3,), dtype="float4_e2m1fn"),)

    class array_type(PackedArray):
        """Bits 8."""

        @property
        def bits(self) -> int:
            return 8

        def describe_tensor(self, export: capsules.Export) -> None:
            super().describe_tensor(export)
            export.managed.tensor.bits = 8
