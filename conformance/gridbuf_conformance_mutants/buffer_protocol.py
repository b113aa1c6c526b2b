"""Defects of the buffer protocol (PB rules). The arrays here have no other interface."""

from __future__ import annotations
from gridbuf_conformance.interfaces.buffer_protocol.pybuffer import PyBuffer

import ctypes
import threading
from ctypes import c_ssize_t
from typing import ClassVar

from gridbuf_conformance.interfaces.buffer_protocol.slots import BufferExporter, static_text
from gridbuf_conformance.plan import Plan

from .memory import Block
from .mutant import Mutant, faulty
from .reference import (
    C_CONTIGUOUS,
    F_CONTIGUOUS,
    FORMAT,
    INDIRECT,
    ND,
    STRIDES,
    WRITABLE,
    Exports,
    ExportsArrayInterface,
    ExportsBuffer,
    Memory,
    asks,
)
from .table import assigned, rows

row = rows(__name__)

Base = Exports.Buffer


_NO_SUBOFFSETS = (c_ssize_t * 64)(*[-1] * 64)
_NO_EXTENTS = (c_ssize_t * 1)(0)


class _Edited(Base):
    """A right answer with some fields changed afterwards."""

    def edit(self, view: PyBuffer, flags: int) -> None:
        raise NotImplementedError(f"{type(self).__name__} must define edit")

    def describe(self, view: PyBuffer, flags: int) -> None:
        super().describe(view, flags)
        self.edit(view, flags)


# --- refusing -----------------------------------------------------------------------------------


@faulty("PB-01")
class RefusesWithValueError(Base):
    """A request that cannot be met raises ValueError."""

    def refuse_unmet(self, flags: int) -> None:
        try:
            super().refuse_unmet(flags)
        except BufferError as error:
            raise ValueError(str(error)) from None


@faulty("PB-01")
class RefusalLeavesTheOwner(Base):
    """A refused request leaves `view.obj` pointing at the exporter."""

    def get_buffer(self, view: PyBuffer, flags: int) -> None:
        view.obj = id(self)
        self.refuse_unmet(flags)
        self.describe(view, flags)
        self.own(view)


@faulty("PB-01")
class RefusesWithoutException(Base):
    """A refused request returns -1 and raises nothing."""

    def get_buffer(self, view: PyBuffer, flags: int) -> int:
        try:
            super().get_buffer(view, flags)
        except BufferError:
            return -1
        return 0


@faulty(advises=("PB-11",))
class FortranGrantedForPlainBytes(Base):
    """A SIMPLE request succeeds for Fortran-contiguous memory."""

    def refuse_unmet(self, flags: int) -> None:
        if asks(flags, ND) or not self.is_contiguous("F"):
            super().refuse_unmet(flags)
        else:
            super().refuse_unmet(flags & WRITABLE | STRIDES)


@faulty("PB-11")
class StridesLostInSilence(Base):
    """Requests without strides succeed for memory that is not C-contiguous."""

    def refuse_unmet(self, flags: int) -> None:
        super().refuse_unmet(flags if asks(flags, STRIDES) else flags & WRITABLE | STRIDES)


@faulty("PB-12")
class FortranGrantedForAnything(Base):
    """A request for Fortran-contiguous memory succeeds for C-contiguous memory."""

    def refuse_unmet(self, flags: int) -> None:
        super().refuse_unmet(
            flags & ~F_CONTIGUOUS | STRIDES if asks(flags, F_CONTIGUOUS) else flags
        )


@faulty("PB-12")
class RowMajorGrantedForAnything(Base):
    """A request for C-contiguous memory succeeds for Fortran-contiguous memory."""

    def refuse_unmet(self, flags: int) -> None:
        super().refuse_unmet(
            flags & ~C_CONTIGUOUS | STRIDES if asks(flags, C_CONTIGUOUS) else flags
        )


@faulty("PB-13")
class WritableGrantedReadOnly(Base):
    """A request for writable memory succeeds on read-only memory and says so."""

    def refuse_unmet(self, flags: int) -> None:
        super().refuse_unmet(flags & ~WRITABLE)


# --- the fields that every request fills --------------------------------------------------------


@faulty("PB-02")
class SimpleRequestLeavesLength(_Edited):
    """`len` is 0 when no shape was requested."""

    def edit(self, view: PyBuffer, flags: int) -> None:
        if not flags & ND:
            view.len = 0


@faulty("PB-02")
class RequestWithoutStridesReportsOneAxis(_Edited):
    """`ndim` is 1 where a shape was requested and strides were not."""

    def edit(self, view: PyBuffer, flags: int) -> None:
        if self.ndim and flags & ND and not asks(flags, STRIDES):
            view.ndim = 1


@faulty("PB-03")
class LengthOfTheFirstAxis(_Edited):
    """`len` covers the first axis only."""

    def edit(self, view: PyBuffer, flags: int) -> None:
        if self.ndim and not self.is_empty:
            view.len = self.shape[0] * self.item_bytes


@faulty("PB-17")
class EmptyArrayHasLength(_Edited):
    """`len` of an array without elements is one item."""

    def edit(self, view: PyBuffer, flags: int) -> None:
        if self.is_empty:
            view.len = self.item_bytes


@faulty("PB-04")
class FormatOfAnotherSize(_Edited):
    """8-byte numbers have the format of a 4-byte one."""

    def edit(self, view: PyBuffer, flags: int) -> None:
        if flags & FORMAT and self.item_bytes == 8:
            view.format = static_text("f")


@faulty("PB-05")
class ItemSizeOneWithoutFormat(_Edited):
    """Without FORMAT, `itemsize` is 1."""

    def edit(self, view: PyBuffer, flags: int) -> None:
        if not flags & FORMAT:
            view.itemsize = 1


# fmt: off
row(faulty("PB-06"), _Edited, "FormatUnasked", "`format` is filled even if it was not requested.",
    edit=assigned("format", lambda self: static_text(self.element.buffer_format(self.swapped))))
row(faulty("PB-07"), _Edited, "FormatLeftOut",
    "`format` is NULL although it was requested: numbers are read as bytes.",
    edit=assigned("format", lambda self: None))
# fmt: on


@faulty("PB-07")
class FormatOfAnotherKind(ExportsArrayInterface, Memory, ExportsBuffer):
    """Floating-point numbers of 8 bytes are called integers; the array interface is correct."""

    def describe(self, view: PyBuffer, flags: int) -> None:
        super().describe(view, flags)
        if flags & FORMAT and self.element.format == "d":
            view.format = static_text(">q" if self.swapped else "q")


@faulty("PB-22")
class ComplexCalledFloat(ExportsArrayInterface, Memory, ExportsBuffer):
    """Complex numbers of 8 bytes have the format of a float; the array interface is correct."""

    def describe(self, view: PyBuffer, flags: int) -> None:
        super().describe(view, flags)
        if flags & FORMAT and self.element.format == "Zf":
            view.format = static_text(">d" if self.swapped else "d")


@faulty("PB-20")
class FormatUngrammatical(_Edited):
    """The format opens a record and does not close it."""

    def edit(self, view: PyBuffer, flags: int) -> None:
        if flags & FORMAT:
            view.format = static_text("T{" + self.element.buffer_format(self.swapped) + ":x:")


@faulty("PB-21")
class LongIsFourBytes(_Edited):
    """4-byte integers have the native format `l`, which is 8 bytes here."""

    def edit(self, view: PyBuffer, flags: int) -> None:
        if flags & FORMAT and self.element.format == "i" and not self.swapped:
            view.format = static_text("l")


# --- shape, strides, suboffsets -----------------------------------------------------------------


@faulty("PB-08")
class ShapeUnasked(_Edited):
    """`shape` is filled for a simple request."""

    def edit(self, view: PyBuffer, flags: int) -> None:
        shape = (c_ssize_t * max(1, self.ndim))(*self.shape)
        self.kept = [*getattr(self, "kept", ()), shape]
        view.shape = shape if self.ndim else None


# fmt: off
row(faulty("PB-09"), _Edited, "StridesLeftOut", "`strides` is NULL although they were requested.",
    edit=assigned("strides", lambda self: None))
# fmt: on


@faulty("PB-10")
class SuboffsetsAllNegative(_Edited):
    """`suboffsets` points to entries of -1 instead of being NULL."""

    def edit(self, view: PyBuffer, flags: int) -> None:
        if asks(flags, INDIRECT) and self.ndim:
            view.suboffsets = _NO_SUBOFFSETS


@faulty("PB-15")
class ScalarHasAShape(_Edited):
    """A 0-d array points `shape` at an empty array."""

    def edit(self, view: PyBuffer, flags: int) -> None:
        if not self.ndim and flags & ND:
            view.shape = _NO_EXTENTS


@faulty("PB-16")
class SixtyFiveAxes(_Edited):
    """Leading axes of extent 1 up to 65 dimensions."""

    def point_to_arrays(self, view: PyBuffer, flags: int) -> None:
        padding = 65 - self.ndim
        wide = self.reshaped((1,) * padding + self.shape, (0,) * padding + self.strides, 0)
        ExportsBuffer.point_to_arrays(wide, view, flags)
        view.ndim = 65

    def edit(self, view: PyBuffer, flags: int) -> None:
        pass


@faulty("PB-17")
class ExtentIsNegative(_Edited):
    """The first extent is -1."""

    def edit(self, view: PyBuffer, flags: int) -> None:
        if view.shape:
            view.shape[0] = -1


class StridesLeaveTheBlock(Mutant):
    """The outer stride is a mebibyte too long for the block; all that follows from it is right."""

    breaks = frozenset({"GT-24"})
    advises = frozenset({"PB-18"})
    array_type = Base

    def allocate(self, plan: Plan) -> Memory:
        array = super().allocate(plan)
        if self.has_fault(plan):
            longest = max(array.strides)
            array.strides = tuple(s + 2**20 * (s == longest) for s in array.strides)
        return array

    @staticmethod
    def has_fault(plan: Plan) -> bool:
        # A view may begin outside the block, where other memory may or may not be.
        is_plain = plan.alignment_size == 1 and not plan.views
        return is_plain and plan.fill is not None and min(plan.shape, default=0) > 1

    def fill(self, array: Memory, plan: Plan) -> None:
        if not self.has_fault(plan):  # else most of its pages are not there
            super().fill(array, plan)


@faulty("PB-19")
class ReversedViewKeepsTheBaseAddress(_Edited):
    """A view's `buf` is that of the array it was made from."""

    def reshaped(self, shape, strides, offset):
        view = super().reshaped(shape, strides, offset)
        view.base_address = getattr(self, "base_address", self.address)
        return view

    def edit(self, view: PyBuffer, flags: int) -> None:
        view.buf = getattr(self, "base_address", self.address)


# --- permission, ownership, lifetime ------------------------------------------------------------


@faulty("PB-14")
class ReadOnlyVaries(_Edited):
    """Read requests with a format say read-only, those without do not."""

    def edit(self, view: PyBuffer, flags: int) -> None:
        if not flags & WRITABLE:
            view.readonly = bool(flags & FORMAT)


@faulty("PB-13")
class ReadOnlyPagesGrantedWritable(_Edited):
    """Pages that refuse writing are handed out as writable."""

    def refuse_unmet(self, flags: int) -> None:
        super().refuse_unmet(flags & ~WRITABLE)

    def edit(self, view: PyBuffer, flags: int) -> None:
        view.readonly = 0


@faulty("PB-13")
class ReadOnlyPagesGrantedToWriters(_Edited):
    """Reading requests say read-only; requests for writable memory get the same pages."""

    def refuse_unmet(self, flags: int) -> None:
        super().refuse_unmet(flags & ~WRITABLE)

    def edit(self, view: PyBuffer, flags: int) -> None:
        view.readonly = self.readonly and not flags & WRITABLE


# fmt: off
row(faulty("PB-23"), Base, "OwnerIsNull", "`obj` is NULL after success.",
    own=assigned("obj", lambda self: None))
# fmt: on


@faulty("PB-25")
class OneShapeForAllViews(Base):
    """All views of a thread, of all arrays, share their shape and strides arrays."""

    shared: ClassVar = threading.local()

    def point_to_arrays(self, view: PyBuffer, flags: int) -> None:
        super().point_to_arrays(view, flags)
        if not hasattr(self.shared, "words"):
            self.shared.words = (c_ssize_t * 128)()
        for place, field in enumerate(("shape", "strides")):
            pointer = getattr(view, field)
            if pointer:
                start = ctypes.addressof(self.shared.words) + 8 * 64 * place
                ctypes.memmove(start, pointer, 8 * self.ndim)
                setattr(view, field, ctypes.cast(start, type(pointer)))


@faulty("PB-25")
class ReleaseOverwritesTheShape(OneShapeForAllViews.array_type):
    """The same arrays are overwritten when one of the views is released."""

    def release_buffer(self, view: PyBuffer) -> None:
        super().release_buffer(view)
        ctypes.memset(self.shared.words, 0x11, ctypes.sizeof(self.shared.words))


@faulty("PB-34")
class FreshCopyForEachRequest(Base):
    """Each request copies the elements and hands out the copy."""

    def describe(self, view: PyBuffer, flags: int) -> None:
        self.copies = [*getattr(self, "copies", ()), self.duplicate()]
        ExportsBuffer.describe(self.copies[-1], view, flags)


@faulty("PB-24")
class ResizeWhileExported(Base):
    """`resize` gives the pages back although a view is alive."""

    def resize(self, *shape: int) -> None:
        old, self.block = self.block, Block(4096)
        self.address = self.block.low
        old.unmap()


@faulty("PB-24")
class ShrinksWhileExported(Base):
    """The same by a method without arguments, in another case."""

    def ShrinkToFit(self) -> None:
        old, self.block = self.block, Block(4096)
        self.address = self.block.low
        old.unmap()


@faulty(advises=["PB-33"])
class EveryRequestIsABufferError(Memory, BufferExporter):
    """A type that exports no memory answers requests with BufferError, not with TypeError."""

    def get_buffer(self, view: PyBuffer, flags: int) -> None:
        view.obj = None
        raise BufferError("this array is never exported")


# --- PEP 688 ------------------------------------------------------------------------------------


@faulty("PB-30", since_python=(3, 12))
class PythonBufferIgnoresWritable(Memory):
    """`__buffer__` answers a request for writable memory with a read-only view."""

    def __buffer__(self, flags: int) -> memoryview:
        view = _python_view(self)
        return view.toreadonly() if flags & WRITABLE else view


# fmt: off
row(faulty("PB-28", since_python=(3, 12)), Memory, "PythonBufferReturnsBytes",
    "`__buffer__` returns bytes.",
    __buffer__=lambda self, flags: b"" if self.is_untouched else _python_view(self).tobytes())
# fmt: on


@faulty("PB-29", since_python=(3, 12))
class PythonReleaseKnowsTheLastViewOnly(Memory):
    """`__release_buffer__` remembers one view, the last one handed out, and raises for others."""

    last: memoryview | None = None

    def __buffer__(self, flags: int) -> memoryview:
        view = _python_view(self)
        if flags & WRITABLE and view.readonly:
            raise BufferError("this array is read-only")
        self.last = view
        return view

    def __release_buffer__(self, view: memoryview) -> None:
        if view is not self.last:
            raise ValueError("this view was not handed out")


def _python_view(array: Memory) -> memoryview:
    """The memory as a memoryview without a ctypes callback, which would lose exceptions."""
    is_plain = array.is_contiguous("C") and not array.is_empty and not array.swapped
    if not is_plain or array.element.format not in "bhiqBHIQfd?":
        raise TypeError("memoryview.cast cannot describe this array")
    flat = memoryview((ctypes.c_ubyte * array.total_bytes).from_address(array.address))
    view = flat.cast("B").cast(array.element.format, array.shape)
    return view.toreadonly() if array.readonly else view
