"""Blocks of memory whose pages, permission and lifetime the zoo controls.

The permission of pages is real (a read-only array is in pages that refuse writing), and unmapping
early is a use-after-free: the pages are gone. The heap gives freed memory to the next array.
"""

from __future__ import annotations

import mmap
import weakref
from ctypes import c_size_t, c_void_p

from gridbuf_conformance.abi.libraries import c_function
from gridbuf_conformance.abi.pages import Pages

_malloc, _free = c_function("malloc"), c_function("free")
_malloc.restype, _malloc.argtypes = c_void_p, [c_size_t]
_free.restype, _free.argtypes = None, [c_void_p]


class Block(Pages):
    """`length_bytes` readable and writable bytes between two pages that refuse every access."""

    def allow(self, *, writable: bool) -> None:
        """Make the pages read-write or read-only."""
        self.protect(mmap.PROT_READ | (mmap.PROT_WRITE if writable else 0))


class HeapBlock:
    """`length_bytes` bytes of the C library's heap, freed when the object is collected."""

    def __init__(self, length_bytes: int) -> None:
        self.low = _malloc(length_bytes)
        self.high = self.low + length_bytes
        weakref.finalize(self, _free, self.low).atexit = False

    def allow(self, *, writable: bool) -> None:
        """The heap has no permissions."""
