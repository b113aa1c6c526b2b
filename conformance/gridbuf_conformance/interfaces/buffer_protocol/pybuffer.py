"""The buffer protocol from outside: `PyObject_GetBuffer` with any flags, and its struct.

`REQUESTS` holds every distinct set of flags that the documentation names. `request` asks with one
set and returns a held view, or raises what the exporter raised. The struct is zeroed before each
call, so that a NULL afterwards means that the exporter left or set it so.
"""

from __future__ import annotations

import ctypes
from types import MappingProxyType
from typing import Any

from ...info import ViewInfo
from ...abi.libraries import python_api
from ...abi.memory import Memory

SIMPLE, WRITABLE, FORMAT, ND, STRIDES = 0x0, 0x1, 0x4, 0x8, 0x18
C_CONTIGUOUS, F_CONTIGUOUS, ANY_CONTIGUOUS, INDIRECT = 0x38, 0x58, 0x98, 0x118

REQUESTS = MappingProxyType(
    {
        "SIMPLE": SIMPLE,
        "WRITABLE": WRITABLE,
        "FORMAT": FORMAT,
        "ND": ND,
        "ND|FORMAT": ND | FORMAT,
        "CONTIG": ND | WRITABLE,
        "STRIDES": STRIDES,
        "STRIDED": STRIDES | WRITABLE,
        "RECORDS_RO": STRIDES | FORMAT,
        "RECORDS": STRIDES | FORMAT | WRITABLE,
        "C_CONTIGUOUS": C_CONTIGUOUS,
        "F_CONTIGUOUS": F_CONTIGUOUS,
        "ANY_CONTIGUOUS": ANY_CONTIGUOUS,
        "C_CONTIGUOUS|WRITABLE": C_CONTIGUOUS | WRITABLE,
        "F_CONTIGUOUS|WRITABLE": F_CONTIGUOUS | WRITABLE,
        "INDIRECT": INDIRECT,
        "FULL_RO": INDIRECT | FORMAT,
        "FULL": INDIRECT | FORMAT | WRITABLE,
    }
)
"""Name of each request → its flags. CONTIG_RO is ND, STRIDED_RO is STRIDES."""


class PyBuffer(ctypes.Structure):
    """The C struct `Py_buffer` (80 bytes on 64-bit systems).

    `obj` and `format` are plain addresses: ctypes counts no reference, and reads no text.
    """

    _fields_ = [
        ("buf", ctypes.c_void_p),
        ("obj", ctypes.c_void_p),
        ("len", ctypes.c_ssize_t),
        ("itemsize", ctypes.c_ssize_t),
        ("readonly", ctypes.c_int),
        ("ndim", ctypes.c_int),
        ("format", ctypes.c_void_p),
        ("shape", ctypes.POINTER(ctypes.c_ssize_t)),
        ("strides", ctypes.POINTER(ctypes.c_ssize_t)),
        ("suboffsets", ctypes.POINTER(ctypes.c_ssize_t)),
        ("internal", ctypes.c_void_p),
    ]


_api = python_api()
_get_buffer = _api.PyObject_GetBuffer
_get_buffer.argtypes = [ctypes.py_object, ctypes.POINTER(PyBuffer), ctypes.c_int]
_get_buffer.restype = ctypes.c_int
_release_buffer = _api.PyBuffer_Release
_release_buffer.argtypes = [ctypes.POINTER(PyBuffer)]
_release_buffer.restype = None


class RefusedRequest(Exception):
    """The exporter refused: `error` is its exception, `obj_is_null`: it left `view.obj` NULL."""

    def __init__(self, error: BaseException, obj_is_null: bool) -> None:
        super().__init__(str(error))
        self.error = error
        self.obj_is_null = obj_is_null


class HeldBuffer:
    """A granted request; `release` gives it back, once."""

    def __init__(self, view: PyBuffer, exporter_id: int) -> None:
        self.view = view
        self._exporter_id = exporter_id
        self._held = True

    def release(self) -> None:
        """Releases the buffer; a second call does nothing."""
        if self._held:
            self._held = False
            _release_buffer(ctypes.byref(self.view))

    def info(self, memory: Memory) -> ViewInfo:
        """The fields as plain values; arrays behind pointers only where they are mapped."""
        view = self.view
        text = memory.text(view.format) if view.format else None
        return ViewInfo(
            buf=view.buf or 0,
            obj=_owner(view.obj, self._exporter_id),
            len=view.len,
            itemsize=view.itemsize,
            readonly=view.readonly,
            ndim=view.ndim,
            format=None if text is None else text.decode("latin-1"),
            format_unmapped=bool(view.format) and text is None,
            shape=memory.entries(view.shape, view.ndim),
            strides=memory.entries(view.strides, view.ndim),
            suboffsets=memory.entries(view.suboffsets, view.ndim),
        )


def _owner(obj: int | None, exporter_id: int) -> str | None:
    if obj is None:
        return None
    return "self" if obj == exporter_id else "other"


def request(exporter: Any, flags: int) -> HeldBuffer:
    """Asks `exporter` for a buffer; raises `RefusedRequest` where it does not grant it."""
    view = PyBuffer()
    try:
        status = _get_buffer(exporter, ctypes.byref(view), flags)
    except Exception as error:
        raise RefusedRequest(error, view.obj is None) from None
    if status != 0:
        silent = SystemError(f"the exporter returned {status} and raised nothing")
        raise RefusedRequest(silent, view.obj is None)
    return HeldBuffer(view, id(exporter))
