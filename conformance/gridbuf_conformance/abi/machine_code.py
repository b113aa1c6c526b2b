"""Functions in machine code, for callbacks that must not run Python code where they are called.

No function of the C library or of CPython has both the effect and the signature that these
callbacks need, and a package in pure Python cannot bring compiled code. So the instructions of each
callback are written next to its use, for x86-64 and for aarch64 (ARMv8.0, which has no atomic
additions). What both need is here: pages, and calls.

The instruction cache of an aarch64 processor does not notice writes. So `CodePages` calls
`__clear_cache` of libgcc after each write. GCC documents this function for that purpose, and
systems with glibc have libgcc, because threads need it. A new mapping of a file with the code would
also do. But a system can forbid it (`noexec`, `vm.memfd_noexec`), and some builds of CPython do not
have `os.memfd_create`.
"""

from __future__ import annotations

import ctypes
import mmap
import platform
import sys
from typing import Any

from .libraries import python_api


def _machine() -> str | None:
    name = platform.machine()  # of the kernel: a 32-bit process has the same
    is_known = sys.platform == "linux" and sys.maxsize > 2**32 and name in ("x86_64", "aarch64")
    return name if is_known else None


MACHINE = _machine()
"""The processor, `x86_64` or `aarch64`; None where the suite has no machine code."""


def words(*instructions: int) -> bytes:
    """The bytes of instructions of aarch64."""
    return b"".join(instruction.to_bytes(4, "little") for instruction in instructions)


def _load(register: int, value: int) -> bytes:
    if MACHINE == "x86_64":
        return bytes((0x48, 0xB8 | register)) + value.to_bytes(8, "little")  # mov r, value
    parts = [value >> shift & 0xFFFF for shift in (0, 16, 32, 48)]
    first = 0xD2800000 | parts[0] << 5 | register  # movz x, part
    rest = (0xF2800000 | k << 21 | parts[k] << 5 | register for k in (1, 2, 3))
    return words(first, *rest)  # movk x, part, lsl 16 k


def load_argument(index: int, value: int) -> bytes:
    """Makes `value` the first (0) or second (1) argument of the next call."""
    rdi, rsi = 7, 6
    return _load((rdi, rsi)[index] if MACHINE == "x86_64" else index, value)


def load_result(value: int) -> bytes:
    """Makes `value` the result."""
    return _load(0, value % 2**64)  # rax or x0


def call(function: Any) -> bytes:
    """Calls a C function: one of ctypes, or an address. Overwrites rax or x16."""
    address = ctypes.cast(function, ctypes.c_void_p).value or 0
    if MACHINE == "x86_64":
        return _load(0, address) + b"\xff\xd0"  # call rax
    return _load(16, address) + words(0xD63F0200)  # blr x16


def unless_zero(code: bytes) -> bytes:
    """Executes up to 127 bytes of code unless the last call's result, an int, is 0."""
    if MACHINE == "x86_64":
        return b"\x85\xc0\x74" + bytes([len(code)]) + code  # test eax, eax; jz behind it
    return words(0x34000000 | (len(code) // 4 + 1) << 5) + code  # cbz w0, behind it


def framed(body: bytes) -> bytes:
    """A function that calls others: keeps the stack aligned, returns the last one's result."""
    if MACHINE == "x86_64":
        return b"\x48\x83\xec\x08" + body + b"\x48\x83\xc4\x08\xc3"  # sub rsp, 8; add rsp, 8; ret
    enter = words(0xA9BF7BFD, 0x910003FD)  # stp x29, x30, [sp, -16]!; mov x29, sp
    return enter + body + words(0xA8C17BFD, 0xD65F03C0)  # ldp x29, x30, [sp], 16; ret


def _cache_clearing() -> Any:
    """`__clear_cache(begin, end)`; None where the caches agree without it."""
    if MACHINE == "x86_64":
        return None
    clear = ctypes.CDLL("libgcc_s.so.1").__clear_cache
    clear.argtypes, clear.restype = [ctypes.c_void_p, ctypes.c_void_p], None
    return clear


class CodePages:
    """Pages for functions. They are never unmapped, as a deleter can be called while the
    interpreter ends, when modules are gone."""

    def __init__(self, length_bytes: int) -> None:
        self._clear_cache = _cache_clearing()
        protection = mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC
        self._pages = mmap.mmap(-1, length_bytes, prot=protection)
        python_api().Py_IncRef(ctypes.py_object(self._pages))
        self._start = ctypes.addressof(ctypes.c_char.from_buffer(self._pages))
        self._used = 0

    def place(self, code: bytes) -> int:
        """The address of a new function with this code."""
        low, high = self._used, self._used + len(code)
        self._pages[low:high] = code
        self._used = -(-high // 16) * 16
        if self._clear_cache is not None:
            self._clear_cache(self._start + low, self._start + high)
        return self._start + low


def code_pages(length_bytes: int) -> CodePages | None:
    """New pages for functions; None on another machine, and on a system that does not allow it."""
    if MACHINE is None:
        return None
    try:
        return CodePages(length_bytes)
    except (AttributeError, OSError):  # no __clear_cache, no libgcc, no such pages
        return None
