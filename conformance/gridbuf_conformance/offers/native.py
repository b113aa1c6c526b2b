"""A deleter that is no Python: it counts its calls and does nothing else.

Consumers call deleters in all sorts of places: on threads that Python has never seen, and while an
exception is on its way. A deleter made by `ctypes` runs Python code there, which loses the
exception that is in flight; a consumer that did nothing wrong would then fail with SystemError.
So the deleter is a few bytes of machine code that adds one to a number behind the struct. They are
written for x86-64; elsewhere `ctypes` has to do, and what depends on it is not judged there
(`IS_NATIVE`).
"""

from __future__ import annotations

import ctypes
import mmap
import platform

__all__ = ["IS_NATIVE", "Frame", "deleter_address"]

ROOM_BYTES = 128


class Frame(ctypes.Structure):
    """Room for one managed tensor's struct, and how often its deleter was called."""

    _fields_ = [("room", ctypes.c_ubyte * ROOM_BYTES), ("calls", ctypes.c_int32)]


def _machine_code() -> mmap.mmap | None:
    if platform.machine() not in ("x86_64", "AMD64"):
        return None
    # lock add dword ptr [rdi + 128], 1; ret
    code = b"\xf0\x83\x87" + ROOM_BYTES.to_bytes(4, "little") + b"\x01\xc3"
    try:
        page = mmap.mmap(-1, mmap.PAGESIZE, prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC)
    except OSError:  # a system that lets nobody write code
        return None
    page[: len(code)] = code
    return page


_page = _machine_code()
IS_NATIVE = _page is not None
"""Whether the deleter is machine code, which leaves exceptions alone."""


@ctypes.CFUNCTYPE(None, ctypes.c_void_p)
def _counting_callback(address: int) -> None:
    Frame.from_address(address).calls += 1


def deleter_address() -> int:
    """The address of a deleter for structs that lie at the start of a `Frame`."""
    if _page is not None:
        return ctypes.addressof(ctypes.c_char.from_buffer(_page))
    return ctypes.cast(_counting_callback, ctypes.c_void_p).value or 0
