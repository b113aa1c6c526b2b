"""Anonymous pages between two pages that refuse every access, with a permission that can change.

Exported memory is in such pages, so a consumer that reads far outside the array dies at that
access.
"""

from __future__ import annotations

import ctypes
import mmap
import sys
import weakref

from .libraries import c_function

_mmap, _munmap, _mprotect = (
    c_function(name, use_errno=True) for name in ("mmap", "munmap", "mprotect")
)
if _mmap is not None:
    _mmap.restype = ctypes.c_void_p
    _mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, *3 * [ctypes.c_int], ctypes.c_long]
    _munmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t]
    _mprotect.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]
_PROT_NONE, _MAP_NORESERVE = 0, 0x4000
_FAILED = ctypes.c_void_p(-1).value
_PAGE_BYTES = mmap.PAGESIZE


class Pages:
    """At least `length_bytes` readable and writable bytes, between two inaccessible pages.

    `low` and `high` bound the usable ones. Unmapped when the object is collected. Raises
    MemoryError if the system refuses.
    """

    def __init__(self, length_bytes: int) -> None:
        if _mmap is None:
            raise NotImplementedError(f"{sys.platform} has no mmap, by which exports are protected")
        usable = max(1, -(-length_bytes // _PAGE_BYTES)) * _PAGE_BYTES
        total = usable + 2 * _PAGE_BYTES
        flags = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | _MAP_NORESERVE
        start = _mmap(None, total, _PROT_NONE, flags, -1, 0)
        if start in (None, _FAILED):
            raise MemoryError(f"mmap of {total} bytes failed with errno {ctypes.get_errno()}")
        self.low = start + _PAGE_BYTES
        self.high = self.low + usable
        self._finalizer = weakref.finalize(self, _munmap, start, total)
        self._finalizer.atexit = False  # type: ignore[misc]  # a property with a setter
        self.protect(mmap.PROT_READ | mmap.PROT_WRITE)

    @property
    def forbidden(self) -> int:
        """An address in an inaccessible page, a multiple of any alignment up to a page."""
        return int(self.high)

    def protect(self, permission: int) -> None:
        """Gives the usable pages a permission: `mmap.PROT_READ` and so on, 0 for none."""
        if _mprotect(self.low, self.high - self.low, permission):
            raise MemoryError(f"mprotect failed with errno {ctypes.get_errno()}")

    def unmap(self) -> None:
        """Unmaps the pages now, even if they are in use."""
        self._finalizer()

    def bytes(self) -> bytes:
        """All usable bytes."""
        return ctypes.string_at(self.low, self.high - self.low)
