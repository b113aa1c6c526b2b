"""Blocks of memory whose pages, permission and lifetime the zoo controls.

The permission is real (a read-only array is in pages that refuse writing), and unmapping early is
an honest use-after-free: the pages are gone, not recycled.
"""

from __future__ import annotations

import mmap

from gridbuf_conformance.abi.pages import Pages


class Block(Pages):
    """`length_bytes` readable and writable bytes between two pages that refuse every access."""

    def allow(self, *, writable: bool) -> None:
        """Make the pages read-write or read-only."""
        self.protect(mmap.PROT_READ | (mmap.PROT_WRITE if writable else 0))
