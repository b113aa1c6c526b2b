"""Deleters and a release in machine code: they count their calls and do little else.

Consumers call deleters in all sorts of places: on threads that Python has never seen, and while an
exception is on its way. A deleter made by `ctypes` runs Python code there, which loses the
exception that is in flight; a consumer that did nothing wrong would then fail with SystemError.
So the deleter is a few bytes of machine code that adds one to a number behind the struct; the
release of a buffer also closes the memory's pages if it was told to. A second deleter also releases
a Python object, as the example in DLPack's Python specification does: it acquires the GIL, and the
object's finalizer is Python code, around which CPython keeps an exception. They are written for x86-64
Linux; elsewhere `ctypes` has to do, and what depends on it is not judged there (`IS_NATIVE`).
"""

from __future__ import annotations

import ctypes
import mmap
import platform
import sys

from ..abi.libraries import c_function, python_api
from ..abi.pybuffer import PyBuffer

__all__ = [
    "IS_NATIVE",
    "Frame",
    "Ledger",
    "ViewFrame",
    "deleter_address",
    "python_deleter_address",
    "release_function",
]

ROOM_BYTES = 128


class Frame(ctypes.Structure):
    """Room for one managed tensor's struct, how often its deleter was called, and the reference that the
    second deleter releases (or NULL)."""

    _fields_ = [
        ("room", ctypes.c_ubyte * ROOM_BYTES),
        ("calls", ctypes.c_int32),
        ("owner", ctypes.c_void_p),
    ]


class Ledger(ctypes.Structure):
    """What the releases of one exporter's buffers keep: how many are open, and which pages the last
    one closes (from `low`, so many bytes; none if `low` is NULL)."""

    _fields_ = [
        ("open", ctypes.c_int64),
        ("low", ctypes.c_void_p),
        ("length_bytes", ctypes.c_int64),
    ]


class ViewFrame(ctypes.Structure):
    """What `Py_buffer.internal` points to: how often this view was released, and its ledger."""

    _fields_ = [("released", ctypes.c_int64), ("ledger", ctypes.POINTER(Ledger))]


_api = python_api()
_api.Py_DecRef.argtypes = [ctypes.c_void_p]
_DELETER_OFFSET, _RELEASE_OFFSET, _PYTHON_DELETER_OFFSET = 0, 64, 128
_DELETER_CODE = (
    b"\xf0\x83\x87" + ROOM_BYTES.to_bytes(4, "little") + b"\x01"  # lock add dword [rdi + 128], 1
    b"\xc3"  # ret
)
_RELEASE_CODE = (  # of (exporter, view); Py_buffer.internal is at byte 72
    b"\x48\x8b\x46\x48"  # mov rax, [rsi + 72]
    b"\x48\x85\xc0\x74\x24"  # if it is NULL: return
    b"\xf0\x48\xff\x00"  # lock inc qword [rax]: released
    b"\x48\x8b\x48\x08"  # mov rcx, [rax + 8]: ledger
    b"\xf0\x48\xff\x09\x75\x16"  # lock dec qword [rcx]: open; if some are: return
    b"\x48\x8b\x79\x08"  # mov rdi, [rcx + 8]: low
    b"\x48\x85\xff\x74\x0d"  # if it is NULL: return
    b"\x48\x8b\x71\x10"  # mov rsi, [rcx + 16]: length_bytes
    b"\x31\xd2"  # PROT_NONE
    b"\xb8\x0a\x00\x00\x00\x0f\x05"  # system call 10: mprotect
    b"\xc3"  # ret
)
_CALLS = Frame.calls.offset.to_bytes(4, "little")
_OWNER = Frame.owner.offset.to_bytes(4, "little")


def _call(name: str) -> bytes:
    """mov rax, the address of a function of the interpreter; call rax."""
    address = ctypes.cast(getattr(_api, name), ctypes.c_void_p).value or 0
    return b"\x48\xb8" + address.to_bytes(8, "little") + b"\xff\xd0"


def _python_deleter_code() -> bytes:
    release = b"".join(
        (
            _call("PyGILState_Ensure"),
            b"\x41\x89\xc4",  # mov r12d, eax
            b"\x48\x8b\xbb" + _OWNER,  # mov rdi, [rbx + owner]
            b"\x48\xc7\x83" + _OWNER + bytes(4),  # mov qword [rbx + owner], 0
            _call("Py_DecRef"),
            b"\x44\x89\xe7",  # mov edi, r12d
            _call("PyGILState_Release"),
        )
    )
    return b"".join(
        (
            b"\x53\x41\x54\x48\x83\xec\x08",  # push rbx; push r12; sub rsp, 8
            b"\x48\x89\xfb",  # mov rbx, rdi
            b"\xf0\x83\x83" + _CALLS + b"\x01",  # lock add dword [rbx + calls], 1
            _call("Py_IsInitialized"),
            b"\x85\xc0\x74" + bytes([len(release)]),  # if it is 0: skip the release
            release,
            b"\x48\x83\xc4\x08\x41\x5c\x5b\xc3",  # add rsp, 8; pop r12; pop rbx; ret
        )
    )


def _machine_code() -> mmap.mmap | None:
    if platform.machine() not in ("x86_64", "AMD64") or sys.platform != "linux":
        return None
    try:
        page = mmap.mmap(-1, mmap.PAGESIZE, prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC)
    except OSError:  # a system that does not allow writing code
        return None
    for offset, code in (
        (_DELETER_OFFSET, _DELETER_CODE),
        (_RELEASE_OFFSET, _RELEASE_CODE),
        (_PYTHON_DELETER_OFFSET, _python_deleter_code()),
    ):
        page[offset : offset + len(code)] = code
    return page


_page = _machine_code()
if _page is not None:
    # A deleter can be called while the interpreter ends, when modules are gone: the page never is.
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(_page))
IS_NATIVE = _page is not None
"""Whether the functions are machine code, which leaves exceptions alone."""


@ctypes.CFUNCTYPE(None, ctypes.c_void_p)
def _counting_callback(address: int) -> None:
    Frame.from_address(address).calls += 1


def deleter_address() -> int:
    """The address of a deleter for structs that lie at the start of a `Frame`."""
    if _page is not None:
        return ctypes.addressof(ctypes.c_char.from_buffer(_page, _DELETER_OFFSET))
    return ctypes.cast(_counting_callback, ctypes.c_void_p).value or 0


@ctypes.CFUNCTYPE(None, ctypes.c_void_p)
def _releasing_callback(address: int) -> None:
    frame = Frame.from_address(address)
    frame.calls += 1
    owner, frame.owner = frame.owner, None
    _api.Py_DecRef(owner)


def python_deleter_address() -> int:
    """The address of a deleter that also releases `Frame.owner`, with the GIL."""
    if _page is not None:
        return ctypes.addressof(ctypes.c_char.from_buffer(_page, _PYTHON_DELETER_OFFSET))
    return ctypes.cast(_releasing_callback, ctypes.c_void_p).value or 0


_RELEASE_TYPE = ctypes.PYFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p)
_INTERNAL_OFFSET = PyBuffer.internal.offset
_mprotect = c_function("mprotect")
if _mprotect is not None:
    _mprotect.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]


@_RELEASE_TYPE
def _release_callback(exporter: int, view: int) -> None:
    address = ctypes.c_void_p.from_address(view + _INTERNAL_OFFSET).value
    if address is None:
        return
    frame = ViewFrame.from_address(address)
    frame.released += 1
    ledger = frame.ledger[0]
    ledger.open -= 1
    if not ledger.open and ledger.low:
        _mprotect(ledger.low, ledger.length_bytes, 0)


def release_function() -> object:
    """A `bf_releasebuffer` for views whose `internal` points to a `ViewFrame`."""
    if _page is None:
        return _release_callback
    return _RELEASE_TYPE(ctypes.addressof(ctypes.c_char.from_buffer(_page, _RELEASE_OFFSET)))
