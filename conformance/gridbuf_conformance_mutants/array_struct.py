"""Defects of `__array_struct__` (AS rules). The arrays, except the last, have only this."""

from __future__ import annotations
from gridbuf_conformance.interfaces.array_struct.struct import ArrayStruct

from gridbuf_conformance.plan import Plan

from . import capsules
from .mutant import Mutant, faulty
from .reference import Exports, ExportsArrayInterface, ExportsArrayStruct, Memory

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


@faulty("AS-02")
class VersionThree(_Edited):
    """The struct's first number is 3."""

    def edit(self, struct: ArrayStruct) -> None:
        struct.two = 3


@faulty("AS-03")
class NegativeDimensions(_Edited):
    """`nd` is -1."""

    def edit(self, struct: ArrayStruct) -> None:
        struct.nd = -1


@faulty("AS-03")
class UnknownKind(_Edited):
    """`typekind` is "d"."""

    def edit(self, struct: ArrayStruct) -> None:
        struct.typekind = b"d"


@faulty("AS-03")
class ItemSizeZero(_Edited):
    """`itemsize` is 0."""

    def edit(self, struct: ArrayStruct) -> None:
        struct.itemsize = 0


@faulty("AS-04")
class StridesAreNull(_Edited):
    """`strides` is NULL for arrays with axes."""

    def edit(self, struct: ArrayStruct) -> None:
        struct.strides = None


@faulty("AS-05")
class FortranBitAlwaysSet(_Flags):
    """Every array claims to be Fortran-contiguous."""

    def edit_flags(self, flags: int) -> int:
        return flags | 0x2


@faulty("AS-05")
class NativeBitAlwaysSet(ExportsArrayInterface, ExportsArrayStruct, Memory):
    """Swapped numbers claim to be in native order; the dict is correct."""

    def array_struct_flags(self) -> int:
        return super().array_struct_flags() | 0x200


@faulty("AS-05")
class UnknownBit(_Flags):
    """Bit 0x8 is set."""

    def edit_flags(self, flags: int) -> int:
        return flags | 0x8


@faulty("AS-06")
class DescrBitWithoutDescr(_Flags):
    """The descr bit is set, the pointer is NULL."""

    def edit_flags(self, flags: int) -> int:
        return flags | 0x800


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
