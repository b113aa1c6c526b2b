"""Deleters and a release in machine code: they count their calls and do little else.

Consumers call deleters in all sorts of places: on threads that Python has never seen, and while an
exception is on its way. A deleter made by `ctypes` runs Python code there, which loses the
exception that is in flight; a consumer that did nothing wrong would then fail with SystemError.
So the deleter is a few bytes of machine code that adds one to a number behind the struct; the
release of a buffer also closes the memory's pages if it was told to. A second deleter also releases
a Python object, as the example in DLPack's Python specification does: it acquires the GIL, and the
object's finalizer is Python code, around which CPython keeps an exception. They are written for
Linux on x86-64 and aarch64 (`machine_code`); elsewhere `ctypes` has to do, and what depends on it
is not judged there (`IS_NATIVE`).
"""

from __future__ import annotations

import ctypes
import mmap
from typing import NamedTuple

from ..abi.libraries import c_function, python_api
from ..abi.machine_code import MACHINE, call, code_pages, unless_zero, words
from ..interfaces.buffer_protocol.pybuffer import PyBuffer

ROOM_BYTES = 128


class Frame(ctypes.Structure):
    """Room for one managed tensor's struct, how often its deleter was called, and the reference
    that the second deleter releases (or NULL)."""

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
_CALLS, _OWNER = Frame.calls.offset, Frame.owner.offset


class _Addresses(NamedTuple):
    """Of the three functions."""

    deleter: int
    release: int
    python_deleter: int


def _x86_64() -> tuple[bytes, bytes, bytes]:
    calls, owner = _CALLS.to_bytes(4, "little"), _OWNER.to_bytes(4, "little")
    deleter = (
        b"\xf0\x83\x87" + calls + b"\x01"  # lock add dword [rdi + calls], 1
        b"\xc3"  # ret
    )
    release = (  # of (exporter, view); Py_buffer.internal is at byte 72
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
    owner_release = (
        call(_api.PyGILState_Ensure)
        + b"\x41\x89\xc4"  # mov r12d, eax
        + (b"\x48\x8b\xbb" + owner)  # mov rdi, [rbx + owner]
        + (b"\x48\xc7\x83" + owner + bytes(4))  # mov qword [rbx + owner], 0
        + call(_api.Py_DecRef)
        + b"\x44\x89\xe7"  # mov edi, r12d
        + call(_api.PyGILState_Release)
    )
    python_deleter = (
        b"\x53\x41\x54\x48\x83\xec\x08"  # push rbx; push r12; sub rsp, 8
        + b"\x48\x89\xfb"  # mov rbx, rdi
        + (b"\xf0\x83\x83" + calls + b"\x01")  # lock add dword [rbx + calls], 1
        + call(_api.Py_IsInitialized)
        + unless_zero(owner_release)
        + b"\x48\x83\xc4\x08\x41\x5c\x5b\xc3"  # add rsp, 8; pop r12; pop rbx; ret
    )
    return deleter, release, python_deleter


def _aarch64() -> tuple[bytes, bytes, bytes]:
    count = words(
        0x91000001 | _CALLS << 10,  # add x1, x0, calls
        0x885FFC22,  # 1: ldaxr w2, [x1]
        0x11000442,  # add w2, w2, 1
        0x8803FC22,  # stlxr w3, w2, [x1]
        0x35FFFFA3,  # cbnz w3, 1b
    )
    ret = words(0xD65F03C0)
    release = words(  # of (exporter, view); Py_buffer.internal is at byte 72
        0xF9402422,  # ldr x2, [x1, 72]
        0xB4000222,  # cbz x2, 3f
        0xC85FFC43,  # 1: ldaxr x3, [x2]: released
        0x91000463,  # add x3, x3, 1
        0xC804FC43,  # stlxr w4, x3, [x2]
        0x35FFFFA4,  # cbnz w4, 1b
        0xF9400442,  # ldr x2, [x2, 8]: ledger
        0xC85FFC43,  # 2: ldaxr x3, [x2]: open
        0xD1000463,  # sub x3, x3, 1
        0xC804FC43,  # stlxr w4, x3, [x2]
        0x35FFFFA4,  # cbnz w4, 2b
        0xB50000E3,  # cbnz x3, 3f
        0xF9400440,  # ldr x0, [x2, 8]: low
        0xB40000A0,  # cbz x0, 3f
        0xF9400841,  # ldr x1, [x2, 16]: length_bytes
        0xD2800002,  # mov x2, PROT_NONE
        0xD2801C48,  # mov x8, 226: mprotect
        0xD4000001,  # svc 0
        0xD65F03C0,  # 3: ret
    )
    owner_release = (
        call(_api.PyGILState_Ensure)
        + words(
            0x2A0003F4,  # mov w20, w0
            0xF9400260 | _OWNER // 8 << 10,  # ldr x0, [x19, owner]
            0xF900027F | _OWNER // 8 << 10,  # str xzr, [x19, owner]
        )
        + call(_api.Py_DecRef)
        + words(0x2A1403E0)  # mov w0, w20
        + call(_api.PyGILState_Release)
    )
    python_deleter = (
        words(
            0xA9BE7BFD,  # stp x29, x30, [sp, -32]!
            0x910003FD,  # mov x29, sp
            0xA90153F3,  # stp x19, x20, [sp, 16]
            0xAA0003F3,  # mov x19, x0
        )
        + count
        + call(_api.Py_IsInitialized)
        + unless_zero(owner_release)
        + words(
            0xA94153F3,  # ldp x19, x20, [sp, 16]
            0xA8C27BFD,  # ldp x29, x30, [sp], 32
        )
        + ret
    )
    return count + ret, release, python_deleter


def _placed() -> _Addresses | None:
    """Where the functions were placed; None without machine code."""
    pages = code_pages(mmap.PAGESIZE)
    if pages is None:
        return None
    codes = _x86_64() if MACHINE == "x86_64" else _aarch64()
    return _Addresses(*map(pages.place, codes))


_functions = _placed()
IS_NATIVE = _functions is not None
"""Whether the functions are machine code, which leaves exceptions alone."""


@ctypes.CFUNCTYPE(None, ctypes.c_void_p)
def _counting_callback(address: int) -> None:
    Frame.from_address(address).calls += 1


def deleter_address() -> int:
    """The address of a deleter for structs at the start of a `Frame`."""
    if _functions is not None:
        return _functions.deleter
    return ctypes.cast(_counting_callback, ctypes.c_void_p).value or 0


@ctypes.CFUNCTYPE(None, ctypes.c_void_p)
def _releasing_callback(address: int) -> None:
    frame = Frame.from_address(address)
    frame.calls += 1
    owner, frame.owner = frame.owner, None
    _api.Py_DecRef(owner)


def python_deleter_address() -> int:
    """The address of a deleter that also releases `Frame.owner`, with the GIL."""
    if _functions is not None:
        return _functions.python_deleter
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
    return _release_callback if _functions is None else _RELEASE_TYPE(_functions.release)
