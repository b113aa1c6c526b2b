"""Defects that only show when two interfaces of one object are compared (XA rules)."""

from __future__ import annotations
from gridbuf_conformance.interfaces.buffer_protocol.slots import static_text
from gridbuf_conformance.interfaces.buffer_protocol.pybuffer import PyBuffer

import ctypes
import threading

from gridbuf_conformance.plan import Plan

from .capsules import Export
from .memory import Block, HeapBlock
from .mutant import Mutant, faulty
from .reference import (
    FORMAT,
    WRITABLE,
    Array,
    Exports,
    ExportsArrayInterface,
    ExportsArrayStruct,
    ExportsBuffer,
    ExportsDLPack,
    Memory,
)


class DictAndBuffer(ExportsArrayInterface, Memory, ExportsBuffer):
    """The array interface next to the buffer protocol."""


class DictAndDLPack(ExportsArrayInterface, ExportsDLPack, Memory):
    """The array interface next to DLPack."""


@faulty("XA-01")
class DLPackStartsOneItemTooFar(DictAndDLPack):
    """DLPack's address is one item too large, for the array and its views."""

    def describe_tensor(self, export: Export) -> None:
        super().describe_tensor(export)
        if self.total_bytes > self.item_bytes:
            export.managed.tensor.data = self.address + self.item_bytes


@faulty("XA-02")
class DictSqueezesAxes(DictAndBuffer):
    """The dict leaves out axes of extent 1; the buffer keeps them."""

    def array_interface(self) -> dict:
        kept = [axis for axis, n in enumerate(self.shape) if n != 1]
        view = self.reshaped(
            [self.shape[axis] for axis in kept], [self.strides[axis] for axis in kept], 0
        )
        return ExportsArrayInterface.array_interface(view)


@faulty("XA-03")
class DictForgetsTheLayout(DictAndBuffer):
    """The dict never has strides; the buffer has the real ones."""

    def array_interface(self) -> dict:
        return {**super().array_interface(), "strides": None}


@faulty("XA-03", plans=(Plan(shape=(3, 4)),))
class DictCountsElements(DictAndDLPack):
    """The strides of the dict count elements, as those of DLPack do."""

    def array_interface(self) -> dict:
        strides = tuple(stride // self.item_bytes for stride in self.strides)
        return {**super().array_interface(), "strides": strides}


@faulty("XA-01", "XA-03")
class OwnBufferFromItsEnd(DictAndBuffer):
    """`data` is None; `offset` and strides of 4-byte numbers go backwards through the own buffer,
    which goes forwards.
    """

    def array_interface(self) -> dict:
        answer = super().array_interface()
        if self.ndim != 1 or self.is_empty or self.item_bytes != 4:
            return answer
        start = self.total_bytes - self.item_bytes
        return {**answer, "data": None, "offset": start, "strides": (-self.item_bytes,)}


@faulty("XA-04")
class BooleansAreBytesInDLPack(DictAndDLPack):
    """Booleans are unsigned 8-bit integers in DLPack."""

    def describe_tensor(self, export: Export) -> None:
        super().describe_tensor(export)
        if self.element.kind == "b":
            export.managed.tensor.code = 1


@faulty("XA-05")
class DictHasHalfItems(DictAndBuffer):
    """The dict calls 8-byte floats 4-byte ones, with the strides of the 8-byte ones."""

    def array_interface(self) -> dict:
        answer = super().array_interface()
        if self.element.format != "d":
            return answer
        typestr = answer["typestr"][0] + "f4"
        return {**answer, "typestr": typestr, "descr": [("", typestr)], "strides": self.strides}


@faulty(advises=["XA-06", "DP-27"])
class WritableInDLPackOnly(ExportsDLPack, Memory, ExportsBuffer):
    """Writable numbers' buffer is read-only, DLPack has no such bit, legacy capsules go out."""

    @property
    def exports_read_only(self) -> bool:
        return self.element.dlpack is not None and not self.swapped

    def refuse_unmet(self, flags: int) -> None:
        if flags & WRITABLE and self.exports_read_only:
            raise BufferError("this array exports its buffer for reading only")
        super().refuse_unmet(flags)

    def describe(self, view: PyBuffer, flags: int) -> None:
        super().describe(view, flags)
        view.readonly = self.readonly or self.exports_read_only


@faulty("XA-04", advises=("XA-07",))
class SwappedBytesInDLPack(DictAndDLPack):
    """The dict tells the swapped byte order, DLPack exports the bytes as native."""

    def check_describable(self, versioned: bool) -> None:
        swapped, self.swapped = self.swapped, False
        try:
            super().check_describable(versioned)
        finally:
            self.swapped = swapped


class _HiddenCopy(DictAndBuffer):
    """The dict reports a copy, made once; the buffer the array's own memory."""

    @property
    def hidden(self) -> Memory:
        if not hasattr(self, "_hidden"):
            self._hidden = self.duplicate()
        return self._hidden

    def array_interface(self) -> dict:
        return ExportsArrayInterface.array_interface(self.hidden)


@faulty("XA-01", "XA-09")
class DictReportsACopy(_HiddenCopy):
    """The dict reports a copy of the elements, made once; the buffer has the real ones."""


@faulty("XA-01", "XA-09")
class DictReportsZeros(_HiddenCopy):
    """The dict reports a fresh block of zeros."""

    @property
    def hidden(self) -> Memory:
        is_new = not hasattr(self, "_hidden") and not self.is_untouched and not self.readonly
        hidden = super().hidden
        if is_new:
            ctypes.memset(hidden.block.low, 0, hidden.block.high - hidden.block.low)
        return hidden


class PagesRefuseReading(Mutant):
    """The pages can be neither read nor written, but host interfaces point to them."""

    breaks = frozenset({"XA-10"})

    def produce(self, plan: Plan) -> object:
        array = super().produce(plan)
        if plan.fill is not None:
            array.block.protect(0)
        return array

    class array_type(DictAndBuffer):
        """The array interface next to the buffer protocol."""


class PagesRefuseWriting(Mutant):
    """All interfaces say writable, as the plan does; the pages refuse writing."""

    breaks = frozenset({"AI-25", "AS-05", "DL-04", "PB-13"})

    def produce(self, plan: Plan) -> object:
        array = super().produce(plan)
        if plan.fill is not None:
            array.block.allow(writable=False)
        return array


class _ReadOnlyByWord(Mutant):
    """Read-only arrays in pages that can be written."""

    def produce(self, plan: Plan) -> object:
        array = super().produce(plan)
        array.block.allow(writable=True)
        return array


class GrantsWhatItCallsReadOnly(_ReadOnlyByWord):
    """DLPack and reading requests say read-only; requests for writable memory are granted."""

    breaks = frozenset({"PB-13"})

    class array_type(ExportsDLPack, Memory, ExportsBuffer):
        """DLPack next to the buffer protocol."""

        def refuse_unmet(self, flags: int) -> None:
            super().refuse_unmet(flags & ~WRITABLE)

        def describe(self, view: PyBuffer, flags: int) -> None:
            super().describe(view, flags)
            view.readonly = self.readonly and not flags & WRITABLE


class StructForgetsReadOnly(_ReadOnlyByWord):
    """Every struct has the bit for writable memory; the dict is correct."""

    breaks = frozenset({"AS-05"})

    class array_type(ExportsArrayInterface, ExportsArrayStruct, Memory):
        """The array interface next to the array struct."""

        def array_struct_flags(self) -> int:
            return super().array_struct_flags() | 0x400


class ViewsForgetReadOnly(_ReadOnlyByWord):
    """A view of a read-only array says that it is writable."""

    breaks = frozenset({"AI-25"})
    plans = (Plan(shape=(5,), readonly=True, views=(("slice", 0, 1, 4, 1),)),)

    class array_type(Exports.ArrayInterface):
        """Only the array interface."""

        def reshaped(self, shape, strides, offset):
            view = super().reshaped(shape, strides, offset)
            view.readonly = False
            return view


class OtherThreadsMayWrite(_ReadOnlyByWord):
    """Only the main thread learns that an array is read-only."""

    breaks = frozenset({"XA-13"})

    class array_type(Exports.ArrayInterface):
        """Only the array interface."""

        def array_interface(self) -> dict:
            is_main = threading.current_thread() is threading.main_thread()
            data = (self.address, self.readonly and is_main)
            return {**super().array_interface(), "data": data}


@faulty("XA-11")
class ViewsOutliveTheMemory(Array):
    """The pages are unmapped when the array is collected, even if a view or capsule remains."""

    def export(self, versioned: bool, *, copied: bool) -> Export:
        export = super().export(versioned, copied=copied)
        if not copied:
            export.owner = None
        return export


class ViewsOutliveTheHeap(Mutant):
    """The same with memory of the heap, which stays mapped and goes to the next array."""

    breaks = frozenset({"XA-11"})
    array_type = ViewsOutliveTheMemory.array_type

    def block(self, length_bytes: int) -> HeapBlock:
        return HeapBlock(length_bytes)


class NextArrayHasTheSameMemory(Mutant):
    """Read-only arrays of one size share a block, which the next of them overwrites."""

    breaks = frozenset({"XA-11"})

    def __init__(self) -> None:
        self.blocks: dict[int, Block] = {}

    def allocate(self, plan: Plan) -> Memory:
        array = super().allocate(plan)
        if plan.readonly:
            array.block = self.blocks.setdefault(plan.nbytes, array.block)
            array.block.allow(writable=True)
            array.address = array.block.low
        return array


@faulty("PB-19", "XA-02", "XA-03")
class BufferIgnoresViews(DictAndBuffer):
    """After a view the buffer describes the array that the view was made from."""

    def reshaped(self, shape, strides, offset):
        view = super().reshaped(shape, strides, offset)
        view.base = getattr(self, "base", self)
        return view

    def get_buffer(self, view: PyBuffer, flags: int) -> None:
        ExportsBuffer.get_buffer(getattr(self, "base", self), view, flags)


@faulty("XA-12")
class TransposeForgetsTheStrides(Memory, ExportsBuffer):
    """A transposed view has the shape of the transposed array and the strides of the other one."""

    def viewed(self, operation):
        view = super().viewed(operation)
        if operation[0] == "transpose":
            view.strides = self.strides
        return view


@faulty("XA-13")
class OtherThreadsGetAnotherFormat(Memory, ExportsBuffer):
    """Requests from other threads than the main one call 8-byte integers floats."""

    def describe(self, view: PyBuffer, flags: int) -> None:
        super().describe(view, flags)
        is_main = threading.current_thread() is threading.main_thread()
        if flags & FORMAT and self.element.format == "q" and not self.swapped and not is_main:
            view.format = static_text("d")


class FillsAnotherContent(Mutant):
    """The elements hold another fill than the plan's."""

    breaks = frozenset({"XA-08"})

    def fill(self, array: Memory, plan: Plan) -> None:
        super().fill(array, plan.replaced(fill=plan.fill + 1))


@faulty("XA-08")
class CopyLosesTheLastByte(Array):
    """What copy=True returns has a zero in its last byte."""

    def copied(self) -> Memory:
        copy = super().copied()
        if not self.is_empty and not self.is_untouched:
            ctypes.memset(copy.address + self.total_bytes - 1, 0, 1)
        return copy
