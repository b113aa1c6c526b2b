"""Faults that only show when two interfaces of one object are compared (XA rules)."""

from __future__ import annotations

import ctypes

from gridbuf_conformance.plan import Plan

from .buffer_type import PyBuffer
from .capsules import Export
from .mutant import Mutant, faulty
from .reference import (
    FORMAT,
    Array,
    Memory,
    OffersArrayInterface,
    OffersBuffer,
    OffersDLPack,
)


class DictAndBuffer(OffersArrayInterface, Memory, OffersBuffer):
    """The array interface beside the buffer protocol."""


class DictAndDLPack(OffersArrayInterface, OffersDLPack, Memory):
    """The array interface beside DLPack."""


@faulty("XA-01")
class DLPackStartsAtTheSecondElement(DictAndDLPack):
    """DLPack's first element is the array's second, where there is one along the last axis."""

    def describe_tensor(self, export: Export) -> None:
        super().describe_tensor(export)
        if self.ndim and self.shape[-1] > 1 and not self.is_empty:
            export.managed.tensor.data = self.address + self.strides[-1]
            export.managed.tensor.shape[self.ndim - 1] -= 1


@faulty("XA-02")
class DictSqueezesAxes(DictAndBuffer):
    """The dict leaves out axes of extent 1; the buffer keeps them."""

    def array_interface(self) -> dict:
        kept = [axis for axis, n in enumerate(self.shape) if n != 1]
        view = self.reshaped(
            [self.shape[axis] for axis in kept], [self.strides[axis] for axis in kept], 0
        )
        return OffersArrayInterface.array_interface(view)


@faulty("XA-03")
class DictForgetsTheLayout(DictAndBuffer):
    """The dict never has strides; the buffer has the real ones."""

    def array_interface(self) -> dict:
        return {**super().array_interface(), "strides": None}


@faulty("XA-04")
class BooleansAreBytesInDLPack(DictAndDLPack):
    """Booleans are unsigned 8-bit integers in DLPack."""

    def describe_tensor(self, export: Export) -> None:
        super().describe_tensor(export)
        if self.element.kind == "b":
            export.managed.tensor.code = 1


@faulty("XA-05")
class DictHasDoubleItems(DictAndBuffer):
    """The dict pairs 4-byte numbers into complex ones, over half the last axis."""

    def array_interface(self) -> dict:
        answer = super().array_interface()
        if self.element.format != "f" or not self.ndim or self.shape[-1] % 2:
            return answer
        typestr = answer["typestr"][0] + "c8"
        shape = (*self.shape[:-1], self.shape[-1] // 2)
        strides = (*self.strides[:-1], 2 * self.strides[-1])
        return {
            **answer,
            "typestr": typestr,
            "descr": [("", typestr)],
            "shape": shape,
            "strides": strides,
        }


@faulty(advises=["XA-06"])
class WritableInDLPackOnly(OffersDLPack, Memory, OffersBuffer):
    """The buffer is read-only, DLPack has no read-only bit; the pages themselves can be written."""

    def refuse_unmet(self, flags: int) -> None:
        self.readonly = True
        try:
            super().refuse_unmet(flags)
        finally:
            self.readonly = False

    def describe(self, view: PyBuffer, flags: int) -> None:
        super().describe(view, flags)
        view.readonly = 1


@faulty("XA-07", "DL-16")
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
            self._hidden = self.copied()
            if self.readonly:
                self._hidden.readonly = True
        return self._hidden

    def array_interface(self) -> dict:
        return OffersArrayInterface.array_interface(self.hidden)


@faulty("XA-01", "XA-09")
class DictReportsACopy(_HiddenCopy):
    """The dict reports a copy of the elements, made once; the buffer has the elements themselves."""


@faulty("XA-01", "XA-08", "XA-09")
class DictReportsZeros(_HiddenCopy):
    """The dict reports a fresh block of zeros."""

    @property
    def hidden(self) -> Memory:
        made = not hasattr(self, "_hidden")
        hidden = super().hidden
        if made and not self.is_untouched:
            ctypes.memset(hidden.address, 0, self.total_bytes)
        return hidden


class PagesRefuseReading(Mutant):
    """The pages can be neither read nor written, though host interfaces point to them."""

    breaks = frozenset({"XA-10"})

    def produce(self, plan: Plan) -> object:
        array = super().produce(plan)
        if plan.fill is not None:
            _libc.mprotect(array.block.low, array.block.high - array.block.low, 0)
        return array

    class array_type(DictAndBuffer):
        """The array interface beside the buffer protocol."""


_libc = ctypes.CDLL(None)
_libc.mprotect.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]


@faulty("XA-11")
class ViewsOutliveTheMemory(Array):
    """The pages are gone when the array is collected, whoever still holds a view of it or a capsule."""

    def export(self, versioned: bool, *, copied: bool) -> Export:
        export = super().export(versioned, copied=copied)
        if not copied:
            export.owner = None
        return export


@faulty("XA-12")
class ReversalForgottenByTheBuffer(DictAndBuffer):
    """After a view the buffer describes the array that the view was made from."""

    def reshaped(self, shape, strides, offset):
        view = super().reshaped(shape, strides, offset)
        view.base = getattr(self, "base", self)
        return view

    def get_buffer(self, view: PyBuffer, flags: int) -> None:
        OffersBuffer.get_buffer(getattr(self, "base", self), view, flags)


@faulty("XA-13")
class EveryOtherFormatDiffers(Memory, OffersBuffer):
    """Every other request spells the format with an explicit byte order and another letter."""

    def describe(self, view: PyBuffer, flags: int) -> None:
        super().describe(view, flags)
        if flags & FORMAT and self.element.format == "q" and not self.swapped:
            self.requests = getattr(self, "requests", 0) + 1
            view.format = b"q" if self.requests % 2 else b"d"
