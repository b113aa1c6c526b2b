"""Producers of the standard library's own memory: they need only Python.

All of them hold bytes the operating system gave to the interpreter, in row-major order. None of
them has an allocator with a choice of layout or alignment, so none of the storage spec's keys is
declared.
"""

from __future__ import annotations

import array
import ctypes
import math
import mmap
import os
import platform
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, cast

from ...plan import UNTOUCHED_FROM_BYTES, Plan
from ...producer import Capabilities, Unsupported
from ...producers.base import HostProducer

_TOUCHED_BYTES = (
    UNTOUCHED_FROM_BYTES - 1
)  # the most a type can make that writes every byte it makes


class _StandardProducer(HostProducer):
    def version(self) -> str:
        """The version of the interpreter: these types are part of it."""
        return platform.python_version()


class _FlatBytesProducer(_StandardProducer):
    """One dimension of `uint8`."""

    def _capabilities(**more: Any) -> Capabilities:
        bounds = {"min_ndim": 1, "max_ndim": 1, "max_nbytes": _TOUCHED_BYTES, **more}
        return Capabilities(dtypes=("uint8",), layouts="C", byteorders=("native",), **bounds)


class BytesProducer(_FlatBytesProducer):
    """`bytes`: read-only."""

    name = "bytes"
    capabilities = _FlatBytesProducer._capabilities(readonly=(True,))

    def make(self, plan: Plan) -> bytes | Unsupported:
        if plan.nbytes == 1:
            return Unsupported("bytes: CPython has one shared object for each one-byte value")
        return bytes(bytearray(plan.content()))  # a copy: no two results are one object


class ByteArrayProducer(_FlatBytesProducer):
    """`bytearray`: writable, can grow."""

    name = "bytearray"
    capabilities = _FlatBytesProducer._capabilities(readonly=(False,))

    def make(self, plan: Plan) -> bytearray:
        return bytearray(plan.content())


class MmapProducer(_FlatBytesProducer):
    """`mmap.mmap`: anonymous pages, or for read-only plans a temporary file with `ACCESS_READ`.

    The only type here that can be asked for gigabytes: untouched pages cost nothing.
    """

    name = "mmap"
    capabilities = _FlatBytesProducer._capabilities(readonly=(False, True), max_nbytes=None)

    def make(self, plan: Plan) -> mmap.mmap | Unsupported:
        if not plan.nbytes:
            return Unsupported("mmap: a mapping has at least one byte")
        if plan.readonly:
            return self._mapped_file(plan)
        pages = mmap.mmap(-1, plan.nbytes)
        if plan.fill is not None:
            pages[:] = plan.content()
        return pages

    @staticmethod
    def _mapped_file(plan: Plan) -> mmap.mmap:
        with tempfile.TemporaryFile() as file:
            if plan.fill is None:
                os.truncate(file.fileno(), plan.nbytes)
            else:
                file.write(plan.content())
                file.flush()
            return mmap.mmap(file.fileno(), plan.nbytes, access=mmap.ACCESS_READ)


_TEXT_CODES = {
    "str1": code for code in "uw" if code in array.typecodes and array.array(code).itemsize == 4
}
"""`array.array` of characters: "w" from Python 3.13 on; before, "u", whose width is the platform's.
"""

_ARRAY_CODES = {
    **{f"int{8 * array.array(code).itemsize}": code for code in "bhiq"},
    **{f"uint{8 * array.array(code).itemsize}": code for code in "BHIQ"},
    "float32": "f",
    "float64": "d",
}


class ArrayProducer(_StandardProducer):
    """`array.array`: one dimension of C's integer and floating-point types."""

    name = "array"
    capabilities = Capabilities(
        dtypes=tuple(_ARRAY_CODES | _TEXT_CODES),
        min_ndim=1,
        max_ndim=1,
        max_nbytes=_TOUCHED_BYTES,
        layouts="C",
        byteorders=("native",),
        readonly=(False,),
    )

    def make(self, plan: Plan) -> array.array[Any]:
        return array.array((_ARRAY_CODES | _TEXT_CODES)[plan.dtype], plan.content())


def _castable(format_letter: str) -> bool:
    """Whether this Python's `memoryview.cast` knows the format ("e" from 3.12 on)."""
    try:
        memoryview(bytes(8)).cast(cast("Any", format_letter))
    except ValueError:
        return False
    return True


_CAST_FORMATS = {
    name: letter
    for name, letter in {**_ARRAY_CODES, "bool": "?", "float16": "e"}.items()
    if _castable(letter)
}


class MemoryViewProducer(_StandardProducer):
    """`memoryview`: any rank by `cast`, over `bytes` for read-only plans, else a `bytearray`."""

    name = "memoryview"
    capabilities = Capabilities(
        dtypes=tuple(_CAST_FORMATS),
        max_nbytes=_TOUCHED_BYTES,
        layouts="C",
        byteorders=("native",),
        readonly=(False, True),
    )

    def make(self, plan: Plan) -> memoryview | Unsupported:
        if 0 in plan.shape[1:]:
            return Unsupported(
                "memoryview: cast takes no zero extents, only axis 0 can be sliced empty"
            )
        is_empty = not plan.nbytes
        content = bytes(math.prod(plan.shape[1:]) * plan.itemsize) if is_empty else plan.content()
        flat = memoryview(bytearray(content))
        if plan.readonly:
            flat = memoryview(bytes(flat))
        shape = (1, *plan.shape[1:]) if is_empty else plan.shape
        view: memoryview = flat.cast(cast("Any", _CAST_FORMATS[plan.dtype]), shape)
        return view[:0] if is_empty else view

    def apply_view(self, obj: memoryview, operation: Sequence[Any]) -> memoryview | Unsupported:
        """Slices of axis 0: all that a memoryview can do without a copy."""
        name, *arguments = operation
        if name not in ("slice", "reverse", "empty") or arguments[0] != 0:
            return Unsupported(
                f"memoryview: it has slices of axis 0 only, not {name} of {arguments}"
            )
        return super().apply_view(obj, operation)


_CTYPES: dict[str, Any] = {
    "bool": ctypes.c_bool,
    **{f"int{8 * ctypes.sizeof(t)}": t for t in (ctypes.c_int8, ctypes.c_int16, ctypes.c_int32)},
    **{
        f"uint{8 * ctypes.sizeof(t)}": t for t in (ctypes.c_uint8, ctypes.c_uint16, ctypes.c_uint32)
    },
    "int64": ctypes.c_int64,
    "uint64": ctypes.c_uint64,
    "float32": ctypes.c_float,
    "float64": ctypes.c_double,
    "longdouble": ctypes.c_longdouble,
}


_FIELDS: Any = [("a", ctypes.c_int8), ("b", ctypes.c_double), ("c", ctypes.c_int16 * 2)]
_PADDED_FIELDS: Any = [("a", ctypes.c_int8), ("b", ctypes.c_double), ("c", ctypes.c_int16 * 3 * 2)]
_SWAPPED_STRUCTURE: Any = (
    ctypes.BigEndianStructure if sys.byteorder == "little" else ctypes.LittleEndianStructure
)


class _Record(ctypes.Structure):
    """The structured element type of the plans: packed, 13 bytes."""

    _pack_ = 1
    _layout_ = "ms"  # what Python before 3.14 takes for granted when `_pack_` is set
    _fields_ = _FIELDS


class _SwappedRecord(_SWAPPED_STRUCTURE):  # type: ignore[misc]  # the byte order picks the base
    """The same in the other byte order."""

    _pack_ = 1
    _layout_ = "ms"
    _fields_ = _FIELDS


class _Padded(ctypes.Structure):
    """The padded record of the plans, as the platform's compiler lays it out."""

    _fields_ = _PADDED_FIELDS


class _SwappedPadded(_SWAPPED_STRUCTURE):  # type: ignore[misc]
    """The same in the other byte order."""

    _fields_ = _PADDED_FIELDS


_CTYPES |= {"struct": _Record, "padded": _Padded}
_SWAPPED_RECORDS = {_Record: _SwappedRecord, _Padded: _SwappedPadded}


class CtypesProducer(_StandardProducer):
    """`ctypes`: simple types for 0-d plans, else nested arrays; swapped types for swapped order."""

    name = "ctypes"
    capabilities = Capabilities(
        dtypes=tuple(_CTYPES),
        max_nbytes=_TOUCHED_BYTES,
        layouts="C",
        byteorders=("native", "swapped"),
        readonly=(False,),
    )

    def make(self, plan: Plan) -> Any:
        kind = self._element_type(plan)
        if kind is None:
            return Unsupported(f"ctypes: it has no swapped {plan.dtype}")
        for extent in reversed(plan.shape):
            kind = kind * extent
        return kind.from_buffer_copy(plan.content())

    @staticmethod
    def _element_type(plan: Plan) -> Any:
        native = _CTYPES[plan.dtype]
        if plan.byteorder == "native":
            return native
        if native in _SWAPPED_RECORDS:
            return _SWAPPED_RECORDS[native]
        both = (getattr(native, f"__ctype_{order}__", None) for order in ("be", "le"))
        return next((kind for kind in both if kind not in (None, native)), None)


class _Union(ctypes.Union):
    """A number or its bytes: the format of a buffer cannot say that."""

    _fields_: Any = [("value", ctypes.c_double), ("bytes", ctypes.c_uint8 * 8)]


class _BitFields(ctypes.Structure):
    """A number of 32 bits in two fields."""

    _fields_: Any = [("low", ctypes.c_uint32, 3), ("high", ctypes.c_uint32, 29)]


class CtypesSpecialProducer(CtypesProducer):
    """`ctypes`: a union for float64, bit-fields for uint32, wide characters for text.

    No element type of the plans names them. They are judged by the sizes of their buffers and by
    their content.
    """

    name = "ctypes.special"
    capabilities = replace(
        CtypesProducer.capabilities,
        dtypes=("float64", "uint32", *(("str1",) if ctypes.sizeof(ctypes.c_wchar) == 4 else ())),
        byteorders=("native",),
    )

    @staticmethod
    def _element_type(plan: Plan) -> Any:
        return {"float64": _Union, "uint32": _BitFields, "str1": ctypes.c_wchar}[plan.dtype]
