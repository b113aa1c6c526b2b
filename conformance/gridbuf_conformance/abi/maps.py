"""What memory this process has mapped, read from `/proc/self/maps` (Linux).

This is the suite's own witness: whatever a producer says about an address, the kernel's list says whether
it can be read or written. On systems without the file `AddressMap.known` is False and the rules that need
it are untested.
"""

from __future__ import annotations

from bisect import bisect_right

__all__ = ["AddressMap"]

_KERNEL_PAGES = (b"[vvar]", b"[vvar_vclock]", b"[vsyscall]")
"""Listed as readable, and not for reading."""


class AddressMap:
    """A snapshot of the mapped regions; `covers` answers from it and refreshes it once before saying no.

    A region that was unmapped after the snapshot would still be found in it: take a new snapshot
    (`refresh`) after anything that may have freed memory.
    """

    def __init__(self) -> None:
        self.known = True
        self._starts: list[int] = []
        self._regions: list[tuple[int, int, bytes]] = []
        self.refresh()

    def refresh(self) -> AddressMap:
        """Reads the kernel's list again; returns itself."""
        try:
            with open("/proc/self/maps", "rb", buffering=0) as file:
                text = file.readall()
        except OSError:
            self.known = False
            return self
        self._regions = [_region(line) for line in text.splitlines()]
        self._starts = [region[0] for region in self._regions]
        return self

    def covers(self, low: int, high: int, access: str = "r") -> bool:
        """Whether every byte of [low, high) is mapped with the access "r", "w" or "x".

        An empty range is covered anywhere. Addresses are plain integers of any magnitude. Where the map is
        not known, everything but the first page counts as covered: nothing has been proved.
        """
        if low >= high:
            return True
        if not self.known:
            return low >= 4096
        return self._covered(low, high, access) or self.refresh()._covered(low, high, access)

    def _covered(self, low: int, high: int, access: str) -> bool:
        letter = access.encode()
        position = bisect_right(self._starts, low) - 1
        while low < high:
            if position < 0 or position >= len(self._regions):
                return False
            start, end, granted = self._regions[position]
            if not start <= low < end or letter not in granted:
                return False
            low, position = end, position + 1
        return True


def _region(line: bytes) -> tuple[int, int, bytes]:
    """(first address, address behind the last, granted accesses) of one line of the list."""
    span, access, _ = line.split(b" ", 2)
    start, _, end = span.partition(b"-")
    special = line.endswith(_KERNEL_PAGES)
    return int(start, 16), int(end, 16), b"---" if special else access
