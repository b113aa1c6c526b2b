"""Consumers whose results export the right memory, and whose own values are wrong; and consumers
that do not do as their keywords say."""

from __future__ import annotations

import ctypes
import os
import struct
from collections.abc import Callable, Sequence
from typing import Any

from .consumer import wrong
from .host_consumer import ArrayInterfaceConsumer, BufferConsumer
from .importer import Imported, Importer
from .table import rows

row = rows(__name__)

_CODES = {
    **{"b1": "?", "f2": "e", "f4": "f", "f8": "d", "c8": "ff", "c16": "dd"},
    **{"i1": "b", "i2": "h", "i4": "i", "i8": "q", "u1": "B", "u2": "H", "u4": "I", "u8": "Q"},
}


def _row_major(shape: Sequence[int], itemsize: int) -> list[int]:
    strides = [itemsize] * len(shape)
    for axis in reversed(range(len(shape) - 1)):
        strides[axis] = strides[axis + 1] * shape[axis + 1]
    return strides


class Values:
    """The numbers of an array interface, read as its own library would; each step is a method that
    a mutant replaces.
    """

    def __init__(self, array: Any) -> None:
        self._array = array
        self.__array_interface__ = array.__array_interface__

    def strides(self, entries: dict[str, Any], itemsize: int) -> Sequence[int]:
        return entries["strides"] or _row_major(entries["shape"], itemsize)

    def address(self, entries: dict[str, Any]) -> int:
        return entries["data"][0]

    def typestr(self, entries: dict[str, Any]) -> str:
        return entries["typestr"]

    def number(self, parts: tuple[Any, ...]) -> Any:
        return complex(*parts) if len(parts) == 2 else parts[0]

    def nested(self) -> Any:
        entries = self.__array_interface__
        typestr = self.typestr(entries)
        if typestr[1:] not in _CODES:
            raise TypeError(f"{typestr} is not a type of number here")
        order = "<" if typestr[0] == "|" else typestr[0]
        code = order + _CODES[typestr[1:]]
        strides = self.strides(entries, struct.calcsize(code))

        def read(address: int, axis: int) -> Any:
            if axis == len(entries["shape"]):
                raw = ctypes.string_at(address, struct.calcsize(code))
                return self.number(struct.unpack(code, raw))
            steps = range(entries["shape"][axis])
            return [read(address + n * strides[axis], axis + 1) for n in steps]

        return read(self.address(entries), 0) if 0 not in entries["shape"] else []


class Listed(Values):
    """`tolist()` has the numbers."""

    def tolist(self) -> Any:
        return self.nested()


class Printed(Values):
    """Only the printed form has them."""

    def __repr__(self) -> str:
        ndim = len(self.__array_interface__["shape"])
        return f"array(ndim=[{ndim}], {self.nested()!r})"


class Added(Values):
    """Only a sum has them."""

    def __add__(self, other: int) -> Any:
        return self.nested()


class Converted(Values):
    """Only `numpy()` has them."""

    def numpy(self) -> Any:
        return Listed.tolist(self)  # type: ignore[arg-type]


def _ignoring_strides(kind: type[Values]) -> type[Values]:
    """The type whose numbers are read as row-major for every array."""

    def strides(self: Values, entries: dict[str, Any], itemsize: int) -> Sequence[int]:
        return _row_major(entries["shape"], itemsize)

    return type(kind.__name__, (kind,), {"strides": strides})


class _Seeing(Importer):
    """A consumer of DLPack whose results are of the type `kind`."""

    kind: Callable[[Any], Any] = Listed

    def result(self, interface: dict[str, Any], owner: Any) -> Any:
        return type(self).kind(Imported(interface, owner))


class _SeeingBuffer(BufferConsumer):
    interfaces = ("buffer",)
    kind: Callable[[Any], Any] = Listed

    def take(self, exporter: Any) -> Any:
        return type(self).kind(super().take(exporter))


class _SeeingArrayInterface(ArrayInterfaceConsumer):
    interfaces = ("array-interface",)
    kind: Callable[[Any], Any] = Listed

    def take(self, exporter: Any) -> Any:
        return type(self).kind(super().take(exporter))


class _SeeingRight(Listed, Printed, Added, Converted):
    """Every way to the numbers, and all of them right."""


class _Strict(_Seeing):
    kind = _SeeingRight


strict = _Strict()

# -- values --------------------------------------------------------------------------------------


# fmt: off
row(wrong("DL-14", "DP-30"), _Seeing, "ListsInMemoryOrder",
    "`tolist()` ignores the strides; the export has them.", kind=_ignoring_strides(Listed))
row(wrong("DL-14", "DP-30"), _Seeing, "PrintsInMemoryOrder",
    "The printed values ignore the strides; the export has them.", kind=_ignoring_strides(Printed))
row(wrong("DL-14", "DP-30"), _Seeing, "AddsInMemoryOrder",
    "A sum ignores the strides; the export has them.", kind=_ignoring_strides(Added))
row(wrong("DL-14", "DP-30"), _Seeing, "ConvertsInMemoryOrder",
    "`numpy()` ignores the strides; the export has them.", kind=_ignoring_strides(Converted))
# fmt: on


class _WithoutImaginaryParts(Listed):
    def number(self, parts: tuple[Any, ...]) -> Any:
        return parts[0]


# fmt: off
row(wrong("DP-30"), _Seeing, "ListsRealParts", "`tolist()` drops imaginary parts.",
    kind=_WithoutImaginaryParts)
# fmt: on


class _DyingWithComplexNumbers(Listed):
    def number(self, parts: tuple[Any, ...]) -> Any:
        return os.abort() if len(parts) == 2 else parts[0]


# fmt: off
row(wrong("DP-30"), _Seeing, "DiesOfItsOwnValues",
    "`tolist()` of complex numbers ends the process.", kind=_DyingWithComplexNumbers)
# fmt: on


class _AtTheBlock(Listed):
    """Knows `data` alone."""

    data: int | None = None

    def address(self, entries: dict[str, Any]) -> int:
        return self.data if self.data is not None else super().address(entries)


@wrong("DL-10")
class ListsFromData(_Seeing):
    """`tolist()` begins at `data`; the export adds byte_offset."""

    def describe(self, tensor: Any, readonly: bool) -> dict[str, Any]:
        self._data = tensor.data
        return super().describe(tensor, readonly)

    def result(self, interface: dict[str, Any], owner: Any) -> Any:
        made = _AtTheBlock(Imported(interface, owner))
        made.data = self._data
        return made


# fmt: off
row(wrong("PB-32"), _SeeingBuffer, "BufferListsInMemoryOrder",
    "`tolist()` of a result over a buffer ignores the strides.", kind=_ignoring_strides(Listed))
row(wrong("PB-22"), _SeeingBuffer, "BufferListsRealParts",
    "`tolist()` of a result over a buffer drops imaginary parts.", kind=_WithoutImaginaryParts)
row(wrong("AI-22"), _SeeingArrayInterface, "ArrayInterfaceAddsInMemoryOrder",
    "A sum of a result over an array interface ignores the strides.", kind=_ignoring_strides(Added))
# fmt: on


# -- keywords ------------------------------------------------------------------------------------


class _Copy:
    """A copy of the elements in row-major order, in separate memory."""

    def __init__(self, array: Any, *, is_wrong: bool = False) -> None:
        entries = array.__array_interface__
        size = int(entries["typestr"][2:])
        self._bytes = bytearray()
        strides = entries["strides"] or _row_major(entries["shape"], size)

        def add(address: int, axis: int) -> None:
            if axis == len(entries["shape"]):
                self._bytes.extend(ctypes.string_at(address, size))
                return
            for n in range(entries["shape"][axis]):
                add(address + n * (size if is_wrong and axis else strides[axis]), axis + 1)

        add(entries["data"][0], 0)
        self._memory = (ctypes.c_char * max(1, len(self._bytes))).from_buffer(self._bytes)
        data = (ctypes.addressof(self._memory), False)
        self.__array_interface__ = {**entries, "data": data, "strides": None}


class _Told(Importer):
    """A consumer of DLPack with the keyword copy."""

    def __call__(self, exporter: Any, *, copy: bool | None = None) -> Any:
        array = super().__call__(exporter)
        return self.copied(array) if copy else array

    def copied(self, array: Any) -> Any:
        return _Copy(array)


class _ToldBuffer(BufferConsumer):
    """A consumer of buffers with the keyword copy."""

    interfaces = ("buffer",)

    def __call__(self, exporter: Any, *, copy: bool | None = None) -> Any:
        array = self.take(exporter)
        return _Copy(array) if copy else array


told = _Told()
told_of_buffers = _ToldBuffer()


# fmt: off
row(wrong("DP-20"), _Told, "SharesDespiteCopyTrue", "copy=True is not looked at.",
    copied=lambda self, array: array)
# fmt: on


@wrong("DP-21")
class CopiesDespiteCopyFalse(_Told):
    """copy=False copies without an error."""

    def __call__(self, exporter: Any, *, copy: bool | None = None) -> Any:
        return super().__call__(exporter, copy=copy is not None)


# fmt: off
row(wrong("DP-30"), _Told, "CopiesAnotherOrder",
    "With copy=True the strides of all axes but the first are forgotten.",
    copied=lambda self, array: _Copy(array, is_wrong=True))
# fmt: on


@wrong("DP-31")
class KeepsTheSourceOfACopy(_Told):
    """With copy=True the tensor that was copied is never deleted."""

    def __init__(self) -> None:
        self._kept: list[Any] = []

    def copied(self, array: Any) -> Any:
        self._kept.append(array)
        return _Copy(array)


@wrong("DL-14", "DP-30")
class ForgetsTheArrayOnADevice(_Told):
    """With device="cpu" the elements are zeros."""

    def __call__(
        self, exporter: Any, *, copy: bool | None = None, device: str | None = None
    ) -> Any:
        array = super().__call__(exporter, copy=copy or device is not None)
        if device is not None:
            ctypes.memset(array.__array_interface__["data"][0], 0, len(array._bytes))
        return array


@wrong("XA-19")
class BufferSharesDespiteCopyTrue(_ToldBuffer):
    """copy=True is not looked at, for buffers."""

    def __call__(self, exporter: Any, *, copy: bool | None = None) -> Any:
        return self.take(exporter)


@wrong("XA-19")
class BufferCopiesDespiteCopyFalse(_ToldBuffer):
    """copy=False copies a buffer without an error."""

    def __call__(self, exporter: Any, *, copy: bool | None = None) -> Any:
        return super().__call__(exporter, copy=copy is not None)
