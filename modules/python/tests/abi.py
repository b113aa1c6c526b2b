"""The C structs of the buffer protocol and DLPack, read with ctypes: what a consumer sees, without any library between."""

from __future__ import annotations

import ctypes
from contextlib import contextmanager
from collections.abc import Iterator
from typing import Any

REQUESTS = {
    "SIMPLE": 0x0,
    "WRITABLE": 0x1,
    "ND": 0x8,
    "CONTIG": 0x9,
    "STRIDES": 0x18,
    "STRIDED": 0x19,
    "RECORDS_RO": 0x1C,
    "RECORDS": 0x1D,
    "C_CONTIGUOUS": 0x38,
    "F_CONTIGUOUS": 0x58,
    "ANY_CONTIGUOUS": 0x98,
    "INDIRECT": 0x118,
    "FULL_RO": 0x11C,
    "FULL": 0x11D,
}


class PyBuffer(ctypes.Structure):
    _fields_ = [
        ("buf", ctypes.c_void_p),
        ("obj", ctypes.c_void_p),
        ("len", ctypes.c_ssize_t),
        ("itemsize", ctypes.c_ssize_t),
        ("readonly", ctypes.c_int),
        ("ndim", ctypes.c_int),
        ("format", ctypes.c_char_p),
        ("shape", ctypes.POINTER(ctypes.c_ssize_t)),
        ("strides", ctypes.POINTER(ctypes.c_ssize_t)),
        ("suboffsets", ctypes.POINTER(ctypes.c_ssize_t)),
        ("internal", ctypes.c_void_p),
    ]

    def entries(self, name: str) -> tuple[int, ...] | None:
        pointer = getattr(self, name)
        return tuple(pointer[i] for i in range(self.ndim)) if pointer else None


_get_buffer = ctypes.pythonapi.PyObject_GetBuffer
_get_buffer.argtypes = [ctypes.py_object, ctypes.POINTER(PyBuffer), ctypes.c_int]
_release_buffer = ctypes.pythonapi.PyBuffer_Release
_release_buffer.argtypes = [ctypes.POINTER(PyBuffer)]
_release_buffer.restype = None


@contextmanager
def requested(exporter: Any, flags: int) -> Iterator[PyBuffer]:
    """The Py_buffer of one request; raises what the exporter raises."""
    view = PyBuffer()
    _get_buffer(exporter, ctypes.byref(view), flags)
    try:
        yield view
    finally:
        _release_buffer(ctypes.byref(view))


class DLTensor(ctypes.Structure):
    _fields_ = [
        ("data", ctypes.c_void_p),
        ("device_type", ctypes.c_int32),
        ("device_id", ctypes.c_int32),
        ("ndim", ctypes.c_int32),
        ("code", ctypes.c_uint8),
        ("bits", ctypes.c_uint8),
        ("lanes", ctypes.c_uint16),
        ("shape", ctypes.POINTER(ctypes.c_int64)),
        ("strides", ctypes.POINTER(ctypes.c_int64)),
        ("byte_offset", ctypes.c_uint64),
    ]

    def entries(self, name: str) -> tuple[int, ...]:
        return tuple(getattr(self, name)[i] for i in range(self.ndim))


class Managed(ctypes.Structure):
    _fields_ = [
        ("tensor", DLTensor),
        ("context", ctypes.c_void_p),
        ("deleter", ctypes.CFUNCTYPE(None, ctypes.c_void_p)),
    ]


class ManagedVersioned(ctypes.Structure):
    _fields_ = [
        ("major", ctypes.c_uint32),
        ("minor", ctypes.c_uint32),
        ("context", ctypes.c_void_p),
        ("deleter", ctypes.CFUNCTYPE(None, ctypes.c_void_p)),
        ("flags", ctypes.c_uint64),
        ("tensor", DLTensor),
    ]


_capsule_name = ctypes.pythonapi.PyCapsule_GetName
_capsule_name.argtypes = [ctypes.py_object]
_capsule_name.restype = ctypes.c_char_p
_capsule_pointer = ctypes.pythonapi.PyCapsule_GetPointer
_capsule_pointer.argtypes = [ctypes.py_object, ctypes.c_char_p]
_capsule_pointer.restype = ctypes.c_void_p
_rename_capsule = ctypes.pythonapi.PyCapsule_SetName
_rename_capsule.argtypes = [ctypes.py_object, ctypes.c_char_p]

# A capsule keeps the pointer to its name.
USED_NAMES = {b"dltensor": b"used_dltensor", b"dltensor_versioned": b"used_dltensor_versioned"}


def capsule_name(capsule: Any) -> bytes:
    return _capsule_name(capsule)


def opened(capsule: Any) -> Managed | ManagedVersioned:
    """The struct in a capsule, which stays unconsumed."""
    name = _capsule_name(capsule)
    kind = Managed if name == b"dltensor" else ManagedVersioned
    return kind.from_address(_capsule_pointer(capsule, name))


def consumed(capsule: Any) -> Managed | ManagedVersioned:
    """The struct in a capsule, taken over as a consumer does: the caller must call its deleter."""
    struct = opened(capsule)
    _rename_capsule(capsule, USED_NAMES[_capsule_name(capsule)])
    return struct


# ---- __array_struct__. ----


class ArrayStruct(ctypes.Structure):
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

    def entries(self, name: str) -> tuple[int, ...]:
        return tuple(getattr(self, name)[i] for i in range(self.nd))


_capsule_context = ctypes.pythonapi.PyCapsule_GetContext
_capsule_context.argtypes = [ctypes.py_object]
_capsule_context.restype = ctypes.c_void_p


def array_struct(capsule: Any) -> ArrayStruct:
    """The struct in an `__array_struct__` capsule, which has no name and is kept by the caller."""
    return ArrayStruct.from_address(_capsule_pointer(capsule, None))


def capsule_context(capsule: Any) -> int | None:
    return _capsule_context(capsule)


# ---- DLPack's C exchange table. ----

# Functions that set Python's exception on failure: ctypes then raises it.
_FromObject = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.py_object, ctypes.POINTER(ctypes.c_void_p))
_ToObject = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.POINTER(ctypes.py_object))
_Borrow = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.py_object, ctypes.POINTER(DLTensor))
_Stream = ctypes.PYFUNCTYPE(
    ctypes.c_int, ctypes.c_int32, ctypes.c_int32, ctypes.POINTER(ctypes.c_void_p)
)
SetError = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_char_p, ctypes.c_char_p)
# Runs without the GIL, as the standard allows.
_Allocate = ctypes.CFUNCTYPE(
    ctypes.c_int,
    ctypes.POINTER(DLTensor),
    ctypes.POINTER(ctypes.c_void_p),
    ctypes.c_void_p,
    SetError,
)


class ExchangeTable(ctypes.Structure):
    _fields_ = [
        ("major", ctypes.c_uint32),
        ("minor", ctypes.c_uint32),
        ("previous", ctypes.c_void_p),
        ("allocate", _Allocate),
        ("from_object", _FromObject),
        ("to_object", _ToObject),
        ("borrow", _Borrow),
        ("stream", _Stream),
    ]


def exchange_table(kind: type) -> ExchangeTable:
    """The table of a type, overlaid at its address."""
    capsule = kind.__dlpack_c_exchange_api__  # type: ignore[attr-defined]
    return ExchangeTable.from_address(_capsule_pointer(capsule, b"dlpack_exchange_api"))


# ---- The C table of a device. ----

_Copy = ctypes.CFUNCTYPE(
    ctypes.c_int, ctypes.c_uint64, ctypes.c_uint64, ctypes.c_uint64, ctypes.c_uint64
)
_SlowFill = ctypes.CFUNCTYPE(
    ctypes.c_int,
    ctypes.c_uint64,
    ctypes.c_int32,
    ctypes.c_uint64,
    ctypes.c_uint32,
    ctypes.c_uint64,
)


class DeviceTable(ctypes.Structure):
    """The first entries of gridbuf_device_table, as far as tests here call it."""

    _fields_ = [
        ("version", ctypes.c_uint32),
        ("struct_bytes", ctypes.c_uint32),
        ("name", ctypes.c_char_p),
        ("_copy", _Copy),
        ("_synchronize", ctypes.c_void_p),
        ("_pointer_info", ctypes.c_void_p),
        ("_slow_fill", _SlowFill),
    ]

    def copy(self, target: int, source: int, length_bytes: int, stream: int) -> None:
        """Copies on `stream` and waits for it."""
        assert self._copy(target, source, length_bytes, stream) == 0

    def slow_fill(
        self, target: int, value: int, length_bytes: int, milliseconds: int, stream: int
    ) -> None:
        """Enqueues a wait and a fill."""
        assert self._slow_fill(target, value, length_bytes, milliseconds, stream) == 0


def device_table() -> DeviceTable:
    """The table of the device in use."""
    import gridbuf.testing

    capsule = gridbuf.testing.device_table()
    return DeviceTable.from_address(_capsule_pointer(capsule, b"gridbuf_device_table_v1"))
