"""Defects of `__array_struct__` (AS rules). The arrays, except the last, have only this."""

from __future__ import annotations
from gridbuf_conformance.interfaces.array_struct.struct import ArrayStruct

from gridbuf_conformance.plan import Plan

from . import capsules
from .memory import HeapBlock
from .mutant import Mutant, faulty
from .reference import Exports, ExportsArrayInterface, ExportsArrayStruct, Memory, freed_copy
from .table import assigned, rows

row = rows(__name__)

Base = Exports.ArrayStruct


class _Edited(Base):
    """A right struct with some fields changed afterwards."""

    def edit(self, struct: ArrayStruct) -> None:
        raise NotImplementedError(f"{type(self).__name__} must define edit")

    def array_struct(self) -> ArrayStruct:
        struct = super().array_struct()
        self.edit(struct)
        return struct


class _Flags(Base):
    """A right struct with other flags."""

    def edit_flags(self, flags: int) -> int:
        raise NotImplementedError(f"{type(self).__name__} must define edit_flags")

    def array_struct_flags(self) -> int:
        return self.edit_flags(super().array_struct_flags())


@faulty("AS-01")
class CapsuleIsNamed(Memory):
    """The capsule has a name."""

    array_struct = ExportsArrayStruct.array_struct
    array_struct_flags = ExportsArrayStruct.array_struct_flags

    @property
    def __array_struct__(self) -> object:
        return capsules.array_struct_capsule(self.array_struct(), self, b"array_struct")


@faulty("AS-01")
class AddressInsteadOfCapsule(Memory):
    """The attribute is the struct's address."""

    @property
    def __array_struct__(self) -> int:
        return self.address


# fmt: off
row(faulty("AS-02"), _Edited, "VersionThree", "The struct's first number is 3.",
    edit=assigned("two", lambda self: 3))
row(faulty("AS-03"), _Edited, "NegativeDimensions", "`nd` is -1.",
    edit=assigned("nd", lambda self: -1))
row(faulty("AS-03"), _Edited, "UnknownKind", '`typekind` is "d".',
    edit=assigned("typekind", lambda self: b"d"))
row(faulty("AS-03"), _Edited, "ItemSizeZero", "`itemsize` is 0.",
    edit=assigned("itemsize", lambda self: 0))
row(faulty("AS-04"), _Edited, "StridesAreNull", "`strides` is NULL for arrays with axes.",
    edit=assigned("strides", lambda self: None))
row(faulty("AS-05"), _Flags, "FortranBitAlwaysSet", "Every array claims to be Fortran-contiguous.",
    edit_flags=lambda self, flags: flags | 0x2)
# fmt: on


@faulty("AS-05")
class NativeBitAlwaysSet(ExportsArrayInterface, ExportsArrayStruct, Memory):
    """Swapped numbers claim to be in native order; the dict is correct."""

    def array_struct_flags(self) -> int:
        return super().array_struct_flags() | 0x200


# fmt: off
row(faulty("AS-05"), _Flags, "NativeBitNeverSet", "Native numbers claim to be swapped.",
    edit_flags=lambda self, flags: flags & ~0x200)
row(faulty("AS-05"), _Flags, "UnknownBit", "Bit 0x8 is set.",
    edit_flags=lambda self, flags: flags | 0x8)
row(faulty("AS-06"), _Flags, "DescrBitWithoutDescr", "The descr bit is set, the pointer is NULL.",
    edit_flags=lambda self, flags: flags | 0x800)
# fmt: on


@faulty("AS-06")
class DescrOfAnotherSize(_Edited):
    """`descr` describes fields of eight bytes for every element type."""

    def edit(self, struct: ArrayStruct) -> None:
        struct.flags |= 0x800
        struct.descr = id(_EIGHT_BYTES)


@faulty("AS-06")
class DescrIsNoList(_Edited):
    """`descr` points to a dict."""

    def edit(self, struct: ArrayStruct) -> None:
        struct.flags |= 0x800
        struct.descr = id(_NO_LIST)


_EIGHT_BYTES, _NO_LIST = [("a", "<f8")], {"a": "<f8"}


class AlignedBitOnOddAddresses(Mutant):
    """Arrays at odd addresses claim to be aligned."""

    breaks = frozenset({"AS-05"})

    class array_type(Base):  # noqa: N801  (the name of an attribute)
        def array_struct_flags(self) -> int:
            return super().array_struct_flags() | 0x100

    def allocate(self, plan: Plan) -> Memory:
        array = super().allocate(plan)
        if plan.fill is not None and plan.alignment_size == 1:
            array.address += 1
        return array


@faulty("AS-07")
class CapsuleOutlivesTheMemory(Memory):
    """The capsule keeps nothing alive: it can be read after the array and its pages are freed."""

    array_struct = ExportsArrayStruct.array_struct
    array_struct_flags = ExportsArrayStruct.array_struct_flags

    @property
    def __array_struct__(self) -> object:
        return capsules.array_struct_capsule(self.array_struct(), None)


class CapsuleOutlivesTheHeap(Mutant):
    """The same with memory of the heap, which stays mapped and goes to the next array."""

    breaks = frozenset({"AS-07"})
    array_type = CapsuleOutlivesTheMemory.array_type

    def block(self, length_bytes: int) -> HeapBlock:
        return HeapBlock(length_bytes)


@faulty("AS-07", plans=(Plan(), Plan(shape=(40,), fill=1), Plan(shape=(20, 10), fill=2)))
class TemporaryInAStruct(_Edited):
    """Each struct points to a copy that was freed."""

    def edit(self, struct: ArrayStruct) -> None:
        struct.data = freed_copy(self)


@faulty("AS-08")
class StructHasOtherStrides(ExportsArrayInterface, ExportsArrayStruct, Memory):
    """The struct has row-major strides for every layout; the dict has the real strides."""

    def array_struct(self) -> ArrayStruct:
        struct = super().array_struct()
        distance = self.item_bytes
        for axis in reversed(range(self.ndim)):
            struct.strides[axis] = distance
            distance *= max(1, self.shape[axis])
        return struct

    def array_struct_flags(self) -> int:
        return super().array_struct_flags() & ~0x3
