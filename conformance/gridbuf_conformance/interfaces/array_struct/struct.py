"""The C struct behind `__array_struct__`, read out of its capsule."""

from __future__ import annotations

import ctypes
from dataclasses import replace
from typing import Any

from ...info import StructInfo
from ...abi.capsule import capsule_name, capsule_pointer, is_capsule
from ...abi.memory import POINTER_BYTES, Memory

FLAG_NAMES = {
    0x1: "C-contiguous",
    0x2: "F-contiguous",
    0x100: "aligned",
    0x200: "native byte order",
    0x400: "writable",
    0x800: "has descr",
}
_HAS_DESCR = 0x800


class ArrayStruct(ctypes.Structure):
    """`PyArrayInterface` of NumPy's headers."""

    _fields_ = [
        ("two", ctypes.c_int),
        ("nd", ctypes.c_int),
        ("typekind", ctypes.c_char),
        ("itemsize", ctypes.c_int),
        ("flags", ctypes.c_int),
        ("shape", ctypes.POINTER(ctypes.c_ssize_t)),
        ("strides", ctypes.POINTER(ctypes.c_ssize_t)),
        ("data", ctypes.c_void_p),
        ("descr", ctypes.c_void_p),
    ]


def read_array_struct(capsule: Any, memory: Memory) -> StructInfo:
    """The fields as plain values, or what kept them from being read.

    A capsule with a name is not read further. Of `descr` only whether it is NULL is told here
    (`announced_descr`).
    """
    if not is_capsule(capsule):
        return StructInfo()
    name = capsule_name(capsule, memory.text)
    info = StructInfo(capsule=True, name=name)
    if name is not None:
        return info
    raw = memory.read(capsule_pointer(capsule), ctypes.sizeof(ArrayStruct))
    if raw is None:
        return replace(info, unmapped=True)
    struct = ArrayStruct.from_buffer_copy(raw)
    return replace(
        info,
        two=struct.two,
        nd=struct.nd,
        typekind=struct.typekind.decode("latin-1"),
        itemsize=struct.itemsize,
        flags=struct.flags,
        data=struct.data or 0,
        has_descr_pointer=bool(struct.descr),
        shape=memory.entries(struct.shape, struct.nd),
        strides=memory.entries(struct.strides, struct.nd),
    )


def announced_descr(capsule: Any, memory: Memory) -> Any:
    """The object that `descr` points to, where the flags announce one and it is a list; else None.

    Whether it is one is read from the type pointer in the head of the object, before it is taken
    for an object.
    """
    raw = memory.read(capsule_pointer(capsule), ctypes.sizeof(ArrayStruct))
    if raw is None:
        return None
    struct = ArrayStruct.from_buffer_copy(raw)
    if not struct.flags & _HAS_DESCR or not struct.descr or struct.descr % POINTER_BYTES:
        return None
    place = (
        struct.descr + object.__basicsize__ - POINTER_BYTES
    )  # ob_type ends the head of every object
    if memory.integers(place, 1) != [id(list)]:
        return None
    return ctypes.cast(struct.descr, ctypes.py_object).value
