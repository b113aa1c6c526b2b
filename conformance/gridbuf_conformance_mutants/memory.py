"""Blocks of memory whose pages, permission and lifetime the zoo controls.

A block is a run of anonymous pages between two pages that must not be accessed. The
permission is real (a read-only array is in pages that refuse writing), and unmapping early is an honest
use-after-free: the pages are gone, not recycled.
"""

from __future__ import annotations

import ctypes
import mmap
import weakref

__all__ = ["Block", "protect_pages"]

_libc = ctypes.CDLL(None, use_errno=True)
_libc.mmap.restype = ctypes.c_void_p
_libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t] + 3 * [ctypes.c_int] + [ctypes.c_long]
_libc.munmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t]
_libc.mprotect.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]

_PROT_NONE, _MAP_NORESERVE = 0, 0x4000
_FAILED = ctypes.c_void_p(-1).value
_PAGE_BYTES = mmap.PAGESIZE


def _check(result: int, call: str) -> int:
    if result in (-1, _FAILED):
        raise MemoryError(f"{call} failed with errno {ctypes.get_errno()}; ask for less memory")
    return result


def protect_pages(low: int, high: int, permission: int) -> None:
    """Give pages a permission: `mmap.PROT_READ` and so on, 0 for none."""
    _check(_libc.mprotect(low, high - low, permission), "mprotect")


class Block:
    """`length_bytes` readable and writable bytes, unmapped when the block is collected.

    `low` and `high` bound the usable pages. Raises MemoryError when the system refuses.
    """

    def __init__(self, length_bytes: int) -> None:
        usable = max(1, -(-length_bytes // _PAGE_BYTES)) * _PAGE_BYTES
        total = usable + 2 * _PAGE_BYTES
        flags = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | _MAP_NORESERVE
        start = _check(_libc.mmap(None, total, _PROT_NONE, flags, -1, 0), "mmap")
        self.low = start + _PAGE_BYTES
        self.high = self.low + usable
        self._finalizer = weakref.finalize(self, _libc.munmap, start, total)
        self._finalizer.atexit = False
        self.protect(writable=True)

    def protect(self, *, writable: bool) -> None:
        """Make the pages read-write or read-only."""
        permission = mmap.PROT_READ | (mmap.PROT_WRITE if writable else 0)
        protect_pages(self.low, self.high, permission)

    def unmap(self) -> None:
        """Unmap the pages now, even if they are still in use."""
        self._finalizer()
