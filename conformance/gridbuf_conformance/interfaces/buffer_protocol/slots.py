"""A base class whose `Py_buffer` answers are written in Python, field by field, on every CPython.

PEP 688's `__buffer__` exists only from Python 3.12 and hands out a `memoryview`, which can only say
what a well-behaved exporter says. Exports that are unusual or wrong, and the zoo of faulty
exporters, need the raw struct. So `BufferExporter` is a type made by `PyType_FromSpecWithBases`
whose `bf_getbuffer` and `bf_releasebuffer` slots are ctypes callbacks; a subclass writes
`get_buffer(view, flags)` and fills the struct as rightly or wrongly as it wants.

One thing a ctypes callback cannot do is return to C with an exception set: ctypes looks after every
call and takes the exception away. The *fuse* solves it. The callback returns an int subclass that
owns a memoryview of an exception class; when C drops that int, the memoryview releases its buffer,
and the `bf_releasebuffer` slot of the exception class is CPython's own `PyErr_SetNone`, which
raises the class. By then ctypes has looked already.
"""

from __future__ import annotations

import ctypes
import itertools
from ctypes import (
    POINTER,
    PYFUNCTYPE,
    Structure,
    byref,
    c_char_p,
    c_int,
    c_uint,
    c_void_p,
)
from functools import cache
from typing import TYPE_CHECKING, Any

from ...abi.libraries import python_api
from .pybuffer import PyBuffer


class _Slot(Structure):
    _fields_ = [("slot", c_int), ("pfunc", c_void_p)]


class _Spec(Structure):
    _fields_ = [
        ("name", c_char_p),
        ("basicsize", c_int),
        ("itemsize", c_int),
        ("flags", c_uint),
        ("slots", POINTER(_Slot)),
    ]


_GETBUFFER = PYFUNCTYPE(c_int, c_void_p, POINTER(PyBuffer), c_int)
_RELEASEBUFFER = PYFUNCTYPE(None, c_void_p, POINTER(PyBuffer))
_BF_GETBUFFER, _BF_RELEASEBUFFER = 1, 2  # slot numbers, CPython's typeslots.h
_TPFLAGS_BASETYPE = 1 << 10

_api = python_api()
_new_type = _api.PyType_FromSpecWithBases
_new_type.restype = ctypes.py_object
_new_type.argtypes = [POINTER(_Spec), ctypes.py_object]
_incref = _api.Py_IncRef
_incref.argtypes = [c_void_p]

_immortal: list[object] = []  # what the interpreter holds by bare address
_incref(id(_immortal))  # also when modules are cleared at exit: buffers are released after that


def _type_with_buffer(name: str, getbuffer: Any, releasebuffer: Any, base: type) -> Any:
    """A heap type of the given base and buffer slots (both ctypes function pointers)."""
    slots = (_Slot * 3)(
        _Slot(_BF_GETBUFFER, ctypes.cast(getbuffer, c_void_p)),
        _Slot(_BF_RELEASEBUFFER, ctypes.cast(releasebuffer, c_void_p)),
        _Slot(0, None),
    )
    spec = _Spec(f"{__name__}.{name}".encode(), 0, 0, _TPFLAGS_BASETYPE, slots)
    _immortal.extend((slots, spec, getbuffer, releasebuffer))
    return _new_type(byref(spec), (base,))


# --- the fuse -----------------------------------------------------------------------------------

_spark = ctypes.create_string_buffer(1)


@_GETBUFFER
def _arm(exception_class: int, view: ctypes._Pointer[PyBuffer], flags: int) -> int:
    """One read-only byte: nothing ever reads it, only its release matters."""
    _incref(exception_class)
    view[0] = PyBuffer(ctypes.addressof(_spark), exception_class, 1, 1, 1, 0, static_text("B"))
    return 0


_Armed = _type_with_buffer("Armed", _arm, _api.PyErr_SetNone, type)


class _Failure(int):
    """The callback's -1; its death raises the exception whose fuse it carries."""

    fuse: memoryview


_fused: dict[type[BaseException], Any] = {}


def failure(error: BaseException) -> int:
    """The -1 of a ctypes callback that leaves this exception to its C caller."""
    kind = type(error)
    if kind not in _fused:
        _fused[kind] = _Armed(kind.__name__, (kind,), {"__str__": lambda self: type(self).text})
    _fused[kind].text = str(error)
    result = _Failure(-1)
    result.fuse = memoryview(_fused[kind])
    return result


# --- the exporter -------------------------------------------------------------------------------

_retained: dict[
    int, object
] = {}  # keys go into Py_buffer.internal, so release finds what to let go
_keys = itertools.count(1)


def retained(*objects: object) -> int:
    """A key for `Py_buffer.internal`: keeps objects (the struct's arrays) until release."""
    key = next(_keys)
    _retained[key] = objects
    return key


@cache
def static_text(text: str) -> int:
    """The address of a text that is never freed, for `Py_buffer.format`."""
    buffer = ctypes.create_string_buffer(text.encode())
    _immortal.append(buffer)
    return ctypes.addressof(buffer)


def _object_at(address: int) -> BufferExporter:
    exporter: BufferExporter = ctypes.cast(address, ctypes.py_object).value
    return exporter


@_GETBUFFER
def _getbuffer(self_address: int, view: ctypes._Pointer[PyBuffer], flags: int) -> int:
    try:
        return _object_at(self_address).get_buffer(view[0], flags) or 0
    except Exception as error:  # noqa: BLE001 (becomes the C caller's exception, whatever it is)
        return failure(error)


@_RELEASEBUFFER
def _releasebuffer(self_address: int, view: ctypes._Pointer[PyBuffer]) -> None:
    _object_at(self_address).release_buffer(view[0])


def own(exporter: object, view: PyBuffer) -> None:
    """Put a new reference to the exporter into the struct; the caller's release drops it."""
    _incref(id(exporter))
    view.obj = id(exporter)


def answering_type(name: str, releasebuffer: Any) -> Any:
    """A base class whose requests call `get_buffer(view, flags)`, and whose releases a C function.

    For exporters that are released while an exception is on its way: Python code would lose it.
    """
    return _type_with_buffer(name, _getbuffer, releasebuffer, object)


if TYPE_CHECKING:
    _BufferBase = object
else:
    _BufferBase = answering_type("BufferBase", _releasebuffer)


class BufferExporter(_BufferBase):
    """A type whose buffer slots call `get_buffer` and `release_buffer`."""

    def get_buffer(self, view: PyBuffer, flags: int) -> int | None:
        """Fill the struct for a request with `PyBUF_*` flags, or raise. Set `obj` by `own(view)`.

        C gets its result; None means 0.
        """
        raise NotImplementedError(f"{type(self).__name__} must define get_buffer")

    def own(self, view: PyBuffer) -> None:
        """Put a new reference to this object into the struct; the caller's release drops it."""
        own(self, view)

    def release_buffer(self, view: PyBuffer) -> None:
        """Let go of what `retained` kept for this view."""
        _retained.pop(view.internal, None)
