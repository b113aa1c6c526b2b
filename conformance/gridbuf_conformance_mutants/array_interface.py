"""Defects of `__array_interface__` (AI rules). Most arrays here have no other interface."""

from __future__ import annotations

import ctypes
from collections import UserDict

from gridbuf_conformance.plan import Plan

from .elements import ELEMENTS
from .memory import Block, HeapBlock
from .mutant import faulty
from .reference import Exports, ExportsArrayInterface, ExportsBuffer, Memory, freed_copy
from .table import rows

row = rows(__name__)

Base = Exports.ArrayInterface


class _Edited(Base):
    """A right answer with some entries replaced, or left out where the edit says None."""

    def edit(self) -> dict:
        raise NotImplementedError(f"{type(self).__name__} must define edit")

    def array_interface(self) -> dict:
        return {**super().array_interface(), **self.edit()}


# --- the dict -----------------------------------------------------------------------------------


# fmt: off
row(faulty("AI-01"), Memory, "InterfaceIsAMethod",
    "The attribute is a method that would return the dict.",
    __array_interface__=lambda self: ExportsArrayInterface.array_interface(self))
# fmt: on


@faulty("AI-01")
class InterfaceIsAnotherMapping(Base):
    """The attribute is a mapping, but not a dict."""

    def array_interface(self) -> UserDict:
        return UserDict(super().array_interface())


@faulty("AI-02")
class VersionMissing(Base):
    """No `version` key."""

    def array_interface(self) -> dict:
        return {k: v for k, v in super().array_interface().items() if k != "version"}


@faulty("AI-02")
class TypestrMissing(Base):
    """No `typestr` key."""

    def array_interface(self) -> dict:
        return {k: v for k, v in super().array_interface().items() if k != "typestr"}


# fmt: off
row(faulty("AI-27"), _Edited, "VersionIsText", '`version` is "3".',
    edit=lambda self: {"version": "3"})
# fmt: on


# --- shape --------------------------------------------------------------------------------------


# fmt: off
row(faulty("AI-03"), _Edited, "ShapeIsAList", "`shape` is a list.",
    edit=lambda self: {"shape": list(self.shape)})
# fmt: on


@faulty("AI-03")
class ExtentIsNegative(_Edited):
    """The first extent has the wrong sign."""

    def edit(self) -> dict:
        return {"shape": tuple(-n for n in self.shape[:1]) + self.shape[1:]}


# fmt: off
row(faulty("AI-03"), _Edited, "ExtentIsABool", "Extents of 1 are `True`.",
    edit=lambda self: {"shape": tuple(True if n == 1 else n for n in self.shape)})
# fmt: on


@faulty("AI-05")
class ElementCountOverflows(_Edited):
    """A last axis of 2^62: the byte count does not fit 64 bits."""

    def edit(self) -> dict:
        shape = (*self.shape, 2**62) if not self.is_empty else self.shape
        return {"shape": shape, "strides": None}


# fmt: off
row(faulty("AI-24"), _Edited, "ScalarWithoutShape", "A 0-d array says shape None.",
    edit=lambda self: {} if self.ndim else {"shape": None})
row(faulty("GT-20"), _Edited, "ScalarHasAnAxis", "A 0-d array says shape (1,).",
    edit=lambda self: {} if self.ndim else {"shape": (1,)})
# fmt: on


# --- element type -------------------------------------------------------------------------------


# fmt: off
row(faulty("AI-06"), _Edited, "TypestrWithoutByteOrder", '`typestr` is "f8" instead of "<f8".',
    edit=lambda self: {"typestr": self.element.typestr(self.swapped)[1:]})
row(faulty("AI-06"), _Edited, "TypestrIsBytes", "`typestr` is a bytes object.",
    edit=lambda self: {"typestr": self.element.typestr(self.swapped).encode()})
# fmt: on


@faulty(advises=("AI-07",))
class FloatOfOneByte(_Edited):
    """Bytes are declared as floats of one byte."""

    def edit(self) -> dict:
        if self.item_bytes != 1 or self.element.kind not in "iu":
            return {}
        return {"typestr": "|f1", "descr": [("", "|f1")]}


@faulty("AI-07")
class ItemSizeOfThree(_Edited):
    """Numbers of 8 bytes are declared as numbers of 3."""

    def edit(self) -> dict:
        if self.item_bytes != 8:
            return {}
        typestr = self.element.typestr(self.swapped)[:2] + "3"
        return {"typestr": typestr, "descr": [("", typestr)], "strides": self.strides}


@faulty(advises=["AI-08"])
class ByteOrderNotRelevant(_Edited):
    """Numbers of several bytes are declared with `|`."""

    def edit(self) -> dict:
        typestr = "|" + self.element.typestr(self.swapped)[1:]
        return {} if self.swapped else {"typestr": typestr, "descr": [("", typestr)]}


@faulty("AI-09", "GT-20")
class ByteOrderInverted(_Edited):
    """Little-endian bytes are declared big-endian and vice versa; empty arrays are, too."""

    def edit(self) -> dict:
        typestr = self.element.typestr(not self.swapped)
        return {"typestr": typestr, "descr": [("", typestr)]}


@faulty("AI-10")
class BitsDeclaredAsBooleans(_Edited):
    """Booleans are packed eight to a byte and declared as `|b1` (Pillow's mode "1")."""

    def edit(self) -> dict:
        if self.element.kind != "b" or self.is_empty or self.is_untouched:
            return {}
        kind = bytes if self.readonly else bytearray
        return {"data": kind(-(-self.total_bytes // 8)), "strides": None}


@faulty("AI-11")
class RecordLosesAField(_Edited):
    """`descr` of a record leaves out its last field."""

    def edit(self) -> dict:
        return {"descr": self.element.descr(self.swapped)[:-1]} if self.element.fields else {}


# fmt: off
row(faulty("AI-11", plans=(Plan(shape=(2,), dtype="padded"),)), _Edited, "PaddingLeftOutOfDescr",
    "`descr` of a record lists its fields without the padding between them.",
    edit=lambda self: {"descr": [field for field in self.element.descr(self.swapped) if field[0]]})
row(faulty("AI-11"), _Edited, "DescrIsATuple", "`descr` is a tuple of fields.",
    edit=lambda self: {"descr": tuple(self.element.descr(self.swapped))})
# fmt: on


@faulty(advises=["AI-13"])
class DescrOfAnotherSize(_Edited):
    """`descr` of a plain number describes one byte more than `typestr`."""

    def edit(self) -> dict:
        if self.element.fields:
            return {}
        return {"descr": [("number", self.element.typestr(self.swapped)), ("extra", "|u1")]}


@faulty(advises=["AI-12"])
class FieldNameTwice(_Edited):
    """`descr` has two fields of one name."""

    def edit(self) -> dict:
        if self.item_bytes != 2:
            return {}
        return {"descr": [("x", "|u1"), ("x", "|u1")]}


# --- address ------------------------------------------------------------------------------------


# fmt: off
row(faulty("AI-14"), _Edited, "AddressIsText",
    "The address is a hexadecimal string, as in version 2.",
    edit=lambda self: {"data": (hex(self.address), self.readonly)})
row(faulty("AI-14"), _Edited, "DataHasThreeEntries", "`data` is (address, read-only, length).",
    edit=lambda self: {"data": (self.address, self.readonly, self.total_bytes)})
row(faulty("AI-14"), _Edited, "AddressIsNone", "The address is None.",
    edit=lambda self: {"data": (None, self.readonly)})
# fmt: on


@faulty("AI-15")
class SliceKeepsTheBaseAddress(Base):
    """A view reports the address of the array it was made from."""

    def reshaped(self, shape, strides, offset):
        view = super().reshaped(shape, strides, offset)
        view.base_address = getattr(self, "base_address", self.address)
        return view

    def array_interface(self) -> dict:
        address = getattr(self, "base_address", self.address)
        return {**super().array_interface(), "data": (address, self.readonly)}


# fmt: off
row(faulty("AI-20"), _Edited, "AddressZero", "Address 0 for an array that holds elements.",
    edit=lambda self: {"data": (0, self.readonly)})
# fmt: on


@faulty("AI-33")
class FreshCopyOnEachAccess(Base):
    """Each access copies the elements elsewhere and reports the copy."""

    def array_interface(self) -> dict:
        self.copies = [*getattr(self, "copies", ()), self.duplicate()]
        return ExportsArrayInterface.array_interface(self.copies[-1])


@faulty("AI-28")
class DictOwnsTheMemory(Base):
    """Each access reports a copy, which is unmapped as soon as its dict is dropped."""

    def array_interface(self) -> dict:
        copy = self.duplicate()
        return {**ExportsArrayInterface.array_interface(copy), "owner": copy.block}


@faulty("AI-28")
class DictOwnsTheHeap(Base):
    """Each access reports a copy in the heap, which is freed as soon as its dict is dropped; this
    affects arrays of up to one axis."""

    def array_interface(self) -> dict:
        copy, entries = self.copied(), super().array_interface()
        if self.ndim > 1 or self.is_untouched:
            return entries
        block = HeapBlock(self.total_bytes)
        ctypes.memmove(block.low, copy.address, self.total_bytes)
        return {**entries, "data": (block.low, self.readonly), "strides": None, "owner": block}


@faulty("AI-28", plans=(Plan(), Plan(shape=(40,), fill=1), Plan(shape=(20, 10), fill=2)))
class AddressOfATemporary(_Edited):
    """Each access describes a copy that is freed before the dict is returned."""

    def edit(self) -> dict:
        return {"data": (freed_copy(self), self.readonly)}


@faulty("AI-30")
class ResizeMovesTheMemory(Base):
    """`resize` gives the pages back although the dict's address may be in use."""

    def resize(self, *shape: int) -> None:
        old, self.block = self.block, Block(4096)
        self.address = self.block.low
        old.unmap()


# --- data as an object --------------------------------------------------------------------------


@faulty("AI-16")
class DataBufferTooShort(_Edited):
    """`data` is a buffer of one byte less than the elements."""

    def edit(self) -> dict:
        if self.is_empty or self.is_untouched:
            return {}
        kind = bytes if self.readonly else bytearray
        return {"data": kind(self.total_bytes - 1), "strides": None}


@faulty("XA-08")
class DataBufferOfAnotherArray(_Edited):
    """`data` is a buffer of the right length, and none of its bytes are the array's."""

    def edit(self) -> dict:
        if self.is_empty or self.is_untouched:
            return {}
        kind = bytes if self.readonly else bytearray
        return {"data": kind(self.total_bytes), "strides": None}


# fmt: off
row(faulty("AI-16"), _Edited, "DataIsNoBuffer", "`data` is an object without a buffer.",
    edit=lambda self: {"data": object()})
row(faulty("AI-17"), _Edited, "OwnBufferMissing", "`data` is None, and the object has no buffer.",
    edit=lambda self: {"data": None})
# fmt: on


@faulty("AI-18")
class OffsetIsNegative(_Edited):
    """`offset` -64 into a buffer object."""

    def edit(self) -> dict:
        if self.is_untouched:
            return {}
        return {"data": bytearray(self.total_bytes + 64), "strides": None, "offset": -64}


@faulty("AI-18")
class OffsetIsText(_Edited):
    """`offset` is "8"."""

    def edit(self) -> dict:
        if self.is_untouched:
            return {}
        return {"data": bytearray(self.total_bytes + 64), "strides": None, "offset": "8"}


@faulty(advises=["AI-19"])
class DataLeftOut(ExportsArrayInterface, Memory, ExportsBuffer):
    """No `data` key: consumers take an old path, though the buffer protocol serves them."""

    def array_interface(self) -> dict:
        answer = super().array_interface()
        return {k: v for k, v in answer.items() if k != "data"} if not answer["strides"] else answer


# --- strides ------------------------------------------------------------------------------------


# fmt: off
row(faulty("AI-21"), _Edited, "StridesAreAList", "`strides` is a list.",
    edit=lambda self: {"strides": list(self.strides)})
row(faulty("AI-21"), _Edited, "OneStrideTooMany", "`strides` has one entry more than `shape`.",
    edit=lambda self: {"strides": (*self.strides, self.item_bytes)})
# fmt: on


@faulty("AI-22")
class StridesLeaveTheBlock(_Edited):
    """The first stride is a mebibyte too long."""

    def edit(self) -> dict:
        if self.is_untouched:
            return {}
        return {"strides": tuple(s + 2**20 for s in self.strides[:1]) + self.strides[1:]}


# --- writing, masks, refusals -------------------------------------------------------------------


# fmt: off
row(faulty("AI-25"), _Edited, "ReadOnlyFlagMissing",
    "Pages that refuse writing are declared writable.",
    edit=lambda self: {"data": (self.address, False)})
row(faulty("AI-25", "GT-20"), _Edited, "ReadOnlyFlagInverted",
    "Pages that refuse writing are declared writable, and vice versa.",
    edit=lambda self: {"data": (self.address, not self.readonly)})
# fmt: on


@faulty(advises=("AI-26",))
class MaskOfAnotherShape(_Edited):
    """`mask` has an axis of 7 that does not broadcast to the shape."""

    def edit(self) -> dict:
        block = Block(7 * 11)
        return {"mask": Base(block, ELEMENTS["bool"], (7, 11), (11, 1), block.low)}


@faulty(advises=("XA-18",))
class GetterRaisesTypeError(Base):
    """The property raises TypeError where AttributeError would say "not supported"."""

    def array_interface(self) -> dict:
        raise TypeError("this array has no host memory")
